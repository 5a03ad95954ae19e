package relay

// Logs is how many logs are in memory, over all sinks.
func (r *Relay) Logs() int64 { return r.logs.Load() }
