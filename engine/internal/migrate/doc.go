// Package migrate takes all instances of a version of a workflow that are under way to another version, in the background: a
// batch, which is a row of the table instance_migration. What becomes of one instance is a command, which goes through the
// commit pipeline like any other; here is only which instances are asked for, and when.
//
// One node does a batch, under a lease in its row with a fencing token. It looks at all instances of the version, kind by kind and
// in each in the order of their last transitions. Those that are migrated leave the kind. What was decided of others is found by the
// key of their command, so that no instance is asked for twice. What could not be taken for now, because an activity is in
// flight, comes again in the next look. A look that finds nothing more ends the batch; so does the first one where there is nothing.
//
// Each page is written into the row before it is asked for, and counted in one statement that takes it out. Whoever takes over
// asks for the same page once more: the keys answer what has become of each, so that every instance is counted once. Two
// nodes at work on one batch would do no harm: the keys decide, and only one can count.
//
// Before each page it is asked which nodes serve. As long as one of them does not know the version, nothing is taken.
package migrate
