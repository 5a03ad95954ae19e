//go:build unix

package faults

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/transitions"
)

// A node is frozen in the middle of a charge. Its lease runs out and another
// takes over. When it thaws the provider's answer is waiting for it, and it
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
	done, err := other.Await(bounded(t), transitions.Ref{Scope: pay(0).Scope, Key: "pay"})
	require.Truef(t, err == nil && !done.Refused(), "the other node: %+v, %v", done, err)
	t.Logf("taken over and paid %s after the freeze, with a lease of %s", time.Since(stopped), shortLease)
	before, err := other.Read().Command(bounded(t), transitions.Ref{Scope: pay(0).Scope, Key: "pay"})
	require.NoError(t, err)
	close(answer)
	require.NoError(t, frozen.command.Process.Signal(syscall.SIGCONT))
	// It is awake, with everything behind it, when it has done something new.
	s.order(1, frozen)
	_, err = other.Await(bounded(t), transitions.Ref{Scope: pay(1).Scope, Key: "pay"})
	require.NoError(t, err)
	frozen.end(t)
	after, err := other.Read().Command(bounded(t), transitions.Ref{Scope: pay(0).Scope, Key: "pay"})
	require.NoError(t, err)
	assert.Truef(t, before.Attempt >= 2 && after.Attempt == before.Attempt && after.Revision == before.Revision &&
		string(after.Body) == string(before.Body) && after.ClaimedBy == before.ClaimedBy,
		"the thawed node changed\n%+v to\n%+v", before, after)
	inst, err := other.Read().Instance(bounded(t), "", instanceOf(0))
	assert.Truef(t, err == nil && inst.State == order.Paid && inst.Version == 3, "%+v, %v", inst, err)
	s.wantPaidOnce(other, 0)
	wantSound(t, other, s.pool)
}
