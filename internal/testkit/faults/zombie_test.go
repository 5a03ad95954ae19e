//go:build unix

package faults

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
)

// A node is frozen during a charge. Its lease expires and another node takes over. When it continues it gets the provider's answer, and
// completes nothing.
func TestFrozenWorker(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	frozen := s.node()
	arrived, freeze, answer := make(chan bool, 1), make(chan struct{}), make(chan struct{})
	s.bank.Misbehave(func(r provider.Request) provider.Behaviour {
		switch {
		case r.Op != provider.OpCharge || r.Key != effect(0):
		case r.N == 1:
			arrived <- true
			<-answer
		default: // it may lose its lease before it is frozen, and try again
			<-freeze
		}
		return provider.Behaviour{}
	})
	s.order(0, frozen)
	<-arrived
	require.NoError(t, frozen.command.Process.Signal(syscall.SIGSTOP))
	stopped := time.Now()
	close(freeze)
	other := s.engine(func(c *engine.Config) { c.InFlight.Lease = 10 * time.Second })
	done, err := other.Await(bounded(t), payment(0))
	require.NoError(t, errors.Join(err, done.Err()))
	t.Logf("taken over and paid %s after the freeze, with a lease of %s", time.Since(stopped), shortLease)
	before, err := other.Read().Command(bounded(t), payment(0))
	require.NoError(t, err)
	close(answer)
	require.NoError(t, frozen.command.Process.Signal(syscall.SIGCONT))
	// It has processed the answer when a new order is paid.
	s.order(1, frozen)
	_, err = other.Await(bounded(t), payment(1))
	require.NoError(t, err)
	frozen.end(t)
	after, err := other.Read().Command(bounded(t), payment(0))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, int(before.Attempt), 2)
	assert.Equal(t, before, after)
	inst, err := other.Read().Instance(bounded(t), "", instanceOf(0))
	require.NoError(t, err)
	assert.Equal(t, order.Paid, inst.State)
	assert.Equal(t, int64(3), inst.Version)
	s.wantPaidOnce(other, 0)
	wantSound(t, other, s.pool)
}
