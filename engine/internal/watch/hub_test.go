package watch

import (
	"context"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/transitions"
)

// whatIsThere is a database in which every command is at revision 1.
func whatIsThere(_ context.Context, refs []transitions.Ref) ([]*transitions.Record, error) {
	list := make([]*transitions.Record, len(refs))
	for i, r := range refs {
		list[i] = &transitions.Record{Scope: r.Scope, Key: r.Key, Status: transitions.Pending, Phase: transitions.Working, Revision: 1}
	}
	return list, nil
}

func testHub(t testing.TB) *Hub {
	h := quietHub(t)
	h.Start()
	return h
}

// quietHub is a hub that does not poll.
func quietHub(t testing.TB) *Hub {
	h := New(Config{Read: whatIsThere, Announce: func([]uint64) {}, Clock: clock.New(nil), Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(h.Stop)
	return h
}

func TestHub_ForgetsUnwatched(t *testing.T) {
	h := testHub(t)
	var work sync.WaitGroup
	for i := range 20 {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		work.Go(func() {
			for range 200 {
				ref := transitions.Ref{Tenant: strconv.Itoa(random.IntN(3)), Scope: "s", Key: strconv.Itoa(random.IntN(20))}
				switch random.IntN(4) {
				case 0:
					h.Changed([]transitions.Ref{ref})
				case 1:
					h.Ended(ref, transitions.Receipt{Status: 200})
				case 2:
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					_, _ = h.Await(ctx, ref) // most time out
					cancel()
				case 3:
					w := h.Watch(ref)
					r, err := w.Next(t.Context())
					assert.Truef(t, err == nil && r.Key == ref.Key, "%+v: got %+v, %v", ref, r, err)
					w.Close()
				}
			}
		})
	}
	work.Wait()
	h.Stop() // the readers have ended
	h.mu.Lock()
	defer h.mu.Unlock()
	assert.Empty(t, h.watched, "commands are kept")
}

// A watcher that joins during a read needs the next read, and gets its record even if it is unchanged.
func TestHub_JoinDuringRead(t *testing.T) {
	begun, goOn := make(chan bool), make(chan bool)
	h := New(Config{Announce: func([]uint64) {}, Clock: clock.New(nil), Log: slog.New(slog.DiscardHandler),
		Read: func(ctx context.Context, refs []transitions.Ref) ([]*transitions.Record, error) {
			begun <- true
			<-goOn
			return whatIsThere(ctx, refs)
		}})
	defer h.Stop()
	ref := transitions.Ref{Tenant: "t", Scope: "s", Key: "k"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	early := h.Watch(ref)
	defer early.Close()
	<-begun
	late := h.Watch(ref)
	defer late.Close()
	goOn <- true
	r, err := early.Next(ctx)
	assert.Truef(t, err == nil && r.Revision == 1, "who was there before gets %+v, %v", r, err)
	<-begun // another one
	goOn <- true
	r, err = late.Next(ctx)
	assert.Truef(t, err == nil && r.Revision == 1, "who came meanwhile gets %+v, %v", r, err)
}

// Changes on this node before the end concern watchers, and not who waits for
// the end; what others say may be the end.
func TestHub_AwaitSkipsProgress(t *testing.T) {
	h := quietHub(t)
	ref := transitions.Ref{Tenant: "t", Scope: "s", Key: "k"}
	h.mu.Lock()
	c := h.join(ref)
	c.waiters++
	h.mu.Unlock()
	touched := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		was := c.wanted || c.begun > 0
		c.begun = 0
		return was
	}
	h.Changed([]transitions.Ref{ref})
	assert.False(t, touched(), "a change here has it read for who waits for the end")
	h.Heard([]uint64{ref.Hash()})
	assert.True(t, touched(), "a change elsewhere does not have it read")
}

// Two commands whose names have one hash are still two.
func TestCommandsOfOneHashStayApart(t *testing.T) {
	h := testHub(t)
	a, b := transitions.Ref{Tenant: "t", Scope: "s", Key: "a"}, transitions.Ref{Tenant: "t", Scope: "s", Key: "b"}
	h.mu.Lock()
	defer h.mu.Unlock()
	first, second := h.join(a), h.join(b)
	delete(h.watched, second.hash)
	second.hash = first.hash
	h.watched[first.hash] = append(h.watched[first.hash], second)
	assert.True(t, h.find(first.hash, a) == first && h.find(first.hash, b) == second, "one is taken for the other")
	second.watchers++
	h.left(first)
	h.left(second)
	assert.True(t, h.find(first.hash, a) == nil && h.find(first.hash, b) == second, "the one who is left is not the one who is watched")
}

// Nodes of all versions must agree on the hash.
func TestTheHashIsFNVOfTheNamesParts(t *testing.T) {
	for _, ref := range []transitions.Ref{{}, {Tenant: "default", Scope: "order:1", Key: "k"},
		{Tenant: "default", Scope: "order:", Key: "1k"}} {
		want := fnv.New64a()
		for _, part := range []string{ref.Tenant, ref.Scope, ref.Key} {
			want.Write(append([]byte(part), 0))
		}
		assert.Equalf(t, want.Sum64(), ref.Hash(), "%+v", ref)
	}
}
