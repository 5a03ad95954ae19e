package api

// OpenStreams is how many streams are open.
func (a *API) OpenStreams() int {
	a.streams.mu.Lock()
	defer a.streams.mu.Unlock()
	return len(a.streams.open)
}
