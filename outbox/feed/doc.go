// Package feed tails the log for whoever follows it on this node.
//
// Each tenant that has followers has one tail, which takes in what is new when it is
// woken, renders every event once, and keeps a bounded ring of the newest.
// Followers who are at the ring read from it; those who are further behind read
// the table themselves until they have caught up. Nobody is pushed to, so a slow
// follower slows nobody.
//
// A tail is woken by the commits of its own node, directly, and gets their events from
// the pipeline, so that they need not be read; by those of other nodes by hints; and,
// because a hint can be lost, by a poll: one query a second for all tails of the node
// together, and none when there are no followers.
package feed
