package inspect

import "github.com/google/uuid"

// Verification is the outcome of checking an audit chain.
type Verification struct {
	Instances int64 // chains checked
	Entries   int64 // rows checked
	Broken    []Break
}

// Break is the first row of a chain that is not what it should be.
type Break struct {
	Instance uuid.UUID
	Version  int64
	Reason   string
}
