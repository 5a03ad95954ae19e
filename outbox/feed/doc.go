// Package feed tails the logs for the followers on this node.
//
// Each followed tenant has one tail. It reads new events when woken, renders each event once, and
// keeps a bounded ring of the newest. Followers read from the ring; followers further behind read
// the table until they have caught up. Followers pull, so a slow follower does not slow others.
//
// Commits of this node wake a tail directly and pass their events, so that these need not be read.
// Commits of other nodes wake it by notifications. Because notifications can be lost, one query per
// second polls all tails of the node. A node without followers does not poll.
package feed
