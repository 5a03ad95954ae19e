package api

// OpenStreams is how many streams are open.
func (a *API) OpenStreams() int { return a.streams.Open() }
