package ring

// What a node sends before it changes the keys.
const (
	BoundSQL = boundSQL
	LockSQL  = lockSQL
)
