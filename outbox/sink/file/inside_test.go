package file

import (
	"bytes"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
)

// slow is a writer whose first write blocks until released.
type slow struct {
	bytes.Buffer
	begun, let chan struct{}
	writes     int
}

func (s *slow) Write(b []byte) (int, error) {
	if s.writes++; s.writes == 1 {
		close(s.begun)
		<-s.let
	}
	return s.Buffer.Write(b)
}

// Deliveries during a write share the next write and sync.
func TestConcurrentDeliveriesShareWrite(t *testing.T) {
	t.Parallel()
	out := &slow{begun: make(chan struct{}), let: make(chan struct{})}
	s := NewWriter(out)
	var work sync.WaitGroup
	deliver := func() {
		assert.Nil(t, s.Deliver(t.Context(), []transitions.Logged{{CloudEvent: []byte("{}")}}))
	}
	work.Go(deliver)
	<-out.begun
	const more = 10
	for range more {
		work.Go(deliver)
	}
	await.Eventually(t, "all of them wait", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.next != nil && len(s.next.lines) == more*len("{}\n")
	})
	close(out.let)
	work.Wait()
	lines := bytes.Count(out.Bytes(), []byte("{}\n"))
	assert.Truef(t, out.writes == 2 && lines == more+1, "%d lines in %d writes", lines, out.writes)
}
