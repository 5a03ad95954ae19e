package engine

// KeysSQL is what Keys asks.
const (
	KeysSQL         = keysSQL
	DeadMessagesSQL = deadMessagesSQL
)
