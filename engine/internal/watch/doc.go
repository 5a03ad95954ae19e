// Package watch follows commands in flight for their watchers.
//
// Watchers wait in memory, and all watchers of one command share its reads. A command is read when its first watcher comes, when this node
// has changed it, and when another node sends a notification; one statement reads many commands, of any tenants. Because notifications can
// be lost, all watched and unfinished commands are also read once a second, or less often if they are more than 8,000: by at most four
// statements a second. Without watchers nothing is read.
//
// A waiter for the end of a command gets the answer without a read if the command soon ends on this node.
package watch
