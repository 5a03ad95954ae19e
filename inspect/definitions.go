package inspect

import "time"

// Definition is a version of a workflow that has run on the database.
type Definition struct {
	Workflow  string
	Version   int
	CreatedAt time.Time // when it was first seen
	Given     bool      // the engine that answers has this version
	Changed   bool      // and it says something else there: no node starts with it

	// Members of its data that are stored, each with its kind, for which this build is refused: those that it does not have, where it
	// has never run here, and those that it may not be able to read.
	Lacking, Unreadable []string
}
