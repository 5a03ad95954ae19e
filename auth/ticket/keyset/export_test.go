package keyset

// Statements that precede a change of the keys.
const (
	BoundSQL = boundSQL
	LockSQL  = lockSQL
)
