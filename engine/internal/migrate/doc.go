// Package migrate moves all running instances of a version of a workflow to another version, in the background. A migration is a batch: a
// row of the table instance_migration. The migration of one instance is a command and goes through the commit pipeline like any other; this
// package selects the instances and the time.
//
// One node runs a batch, under a lease in its row with a fencing token. It reads all instances of the version, kind by kind, and in each
// kind in the order of their last transitions. Migrated instances leave the kind. The outcome of the others is found by the key of their
// command, so that no instance is processed twice. Instances that cannot be moved yet, because an activity is in flight, are read again in
// the next pass. A pass that finds no instance ends the batch.
//
// Each page is written into the row before it is submitted, and counted by the statement that removes it. A node that takes over submits
// the same page again: the keys return the outcome of each command, so every instance is counted once. Two nodes that run one batch do no
// harm: the keys decide, and only one of them can count.
//
// Before each page the node checks which nodes serve. While one of them does not know the version, no instance is moved.
package migrate
