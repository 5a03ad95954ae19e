package ticket

import "sync"

// ends are the ends of tickets that have two: that of their signing key, and that of an API key. Tickets with the same two
// share one, so there are no more of them than API keys in use, times the few signing keys.
type ends struct {
	mu      sync.Mutex
	all     map[both]chan struct{}
	running sync.WaitGroup
	stopped chan struct{} // made with all, closed by stop
}

type both struct{ a, b <-chan struct{} }

// first returns what is closed as soon as one of the two is. nil never is.
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

func (e *ends) stop() {
	e.mu.Lock()
	if e.stopped != nil {
		select {
		case <-e.stopped:
		default:
			close(e.stopped)
		}
	}
	e.mu.Unlock()
	e.running.Wait()
}
