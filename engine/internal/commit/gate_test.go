package commit

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

func TestGateWaitsForEarlierDecisions(t *testing.T) {
	t.Parallel()
	var g gate
	if err := g.drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	leave := g.enter()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 { // also where an earlier drain has given up
		if err := g.drain(ended); !errors.Is(err, context.Canceled) {
			t.Fatalf("it does not wait: %v", err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- g.drain(t.Context()) }()
	leave()
	if err := await.Receive(t, "the drain", done); err != nil {
		t.Error(err)
	}
	defer g.enter()()
}
