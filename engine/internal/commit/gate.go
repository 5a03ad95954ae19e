package commit

import (
	"context"
	"sync"
)

// gate reports when all decisions that began before a moment are written or abandoned. The zero value is ready to use.
type gate struct {
	mu  sync.Mutex
	now *sync.WaitGroup // of those that begin now; nil: none has begun
}

// enter begins a decision. leave ends it.
func (g *gate) enter() (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now == nil {
		g.now = &sync.WaitGroup{}
	}
	g.now.Add(1)
	return g.now.Done
}

// drain waits for those that have begun. Later ones do not wait for it.
func (g *gate) drain(ctx context.Context) error {
	g.mu.Lock()
	before := g.now
	g.now = nil
	g.mu.Unlock()
	if before == nil {
		return nil
	}
	done := make(chan struct{})
	go func() { before.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		g.rejoin(before)
		return ctx.Err()
	}
}

// rejoin has the next drain wait for those that this one has not waited for.
func (g *gate) rejoin(before *sync.WaitGroup) {
	leave := g.enter()
	go func() { before.Wait(); leave() }()
}

// Drain waits until all commands whose decision has begun are committed or have failed. What is decided afterwards sees the definitions
// as they are now. In a caller's transaction a command is written when RunTx returns, and not yet committed.
func (pipe *Pipeline) Drain(ctx context.Context) error { return pipe.gate.drain(ctx) }
