package commit

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

func TestGateWaitsForEarlierDecisions(t *testing.T) {
	t.Parallel()
	var g gate
	require.NoError(t, g.drain(t.Context()))
	leave := g.enter()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 { // also where an earlier drain has given up
		require.ErrorIs(t, g.drain(ended), context.Canceled, "it does not wait")
	}
	done := make(chan error, 1)
	go func() { done <- g.drain(t.Context()) }()
	leave()
	assert.NoError(t, await.Receive(t, "the drain", done))
	defer g.enter()()
}
