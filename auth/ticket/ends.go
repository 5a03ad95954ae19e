package ticket

import "sync"

// ends merges the end of a ticket's signing key with that of its API key. Tickets with the same two
// share one channel, so their number is bounded by the API keys in use times the few signing keys.
type ends struct {
	mu      sync.Mutex
	all     map[both]chan struct{}
	running sync.WaitGroup
	stopped chan struct{} // created with all, closed by stop
}

type both struct{ a, b <-chan struct{} }

// first returns a channel that is closed when a or b is closed. Nil channels are never closed.
func (e *ends) first(a, b <-chan struct{}) <-chan struct{} {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all, e.stopped = map[both]chan struct{}{}, make(chan struct{})
	}
	one := both{a, b}
	if known, is := e.all[one]; is {
		return known
	}
	first := make(chan struct{})
	e.all[one] = first
	e.running.Go(func() {
		select {
		case <-a:
			close(first)
		case <-b:
			close(first)
		case <-e.stopped:
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.all, one)
	})
	return first
}
