// Package watch tells those who watch commands in flight how they stand.
//
// Whoever watches waits in memory, and all who watch one command share what is
// read of it. A command is read when somebody begins to watch it, when this node
// has changed it, and when another node says so; many are read together, by one
// statement, whosever they are. Because a hint can be lost, all commands that are
// watched and not finished are read once a second too, or less often where they are
// more than 8,000: by four statements a second at most. While nobody watches nothing is
// read.
//
// Who only waits for the end of a command gets the answer without any read where
// it ends on this node soon.
package watch
