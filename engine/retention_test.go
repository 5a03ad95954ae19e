package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// While answers become tombstones and the clock advances, each late duplicate gets the first answer or KeyExpired; it never runs again.
func TestRetention_Duplicates(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill() // else no answer is replayed for longer than a second
	nodes := make([]*engine.Engine, 2)
	for i := range nodes {
		nodes[i] = newEngine(t, pool, clock.set, func(c *engine.Config) {
			c.Replay = time.Second
			c.Retention.Off = true // purge skips rows that are locked, so of two purges at once neither sees them all
		})
	}
	const keys = 40
	first := make([]atomic.Pointer[string], keys)
	var replayed, expired atomic.Int64
	var callers sync.WaitGroup
	purged := make(chan bool)
	for caller := range 8 {
		callers.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-purged:
					return
				default:
				}
				k := (round + caller) % keys
				r, err := nodes[caller%2].Submit(t.Context(), applied(fmt.Sprint("L-", k), 100))
				switch {
				case workflow.CodeOf(err) == workflow.KeyExpired:
					expired.Add(1)
				case err != nil:
					t.Error(err)
				default:
					body := string(r.Body)
					if !first[k].CompareAndSwap(nil, &body) {
						replayed.Add(1)
						assert.Equal(t, body, *first[k].Load(), "another answer")
					}
				}
			}
		})
	}
	eventually(t, "every key was asked, and answers were replayed", func() bool {
		for k := range first {
			if first[k].Load() == nil {
				return false
			}
		}
		return replayed.Load() > 2*keys
	})
	for range 5 { // as retention does, but at once
		clock.skip(time.Second)
		query[int64](t, pool, "SELECT expired FROM pawl.purge(7, moment => $1)", clock.Now())
	}
	before := expired.Load()
	eventually(t, "keys are refused", func() bool { return expired.Load() > before+2*keys })
	close(purged)
	callers.Wait()
	assert.Equal(t, keys, query[int](t, pool, "SELECT count(*)::int FROM pawl.audit"), "transitions of keys")
	query[int64](t, pool, "SELECT expired FROM pawl.purge(moment => $1)", clock.Now().Add(time.Minute))
	assert.Equal(t, keys, query[int](t, pool, "SELECT count(*)::int FROM pawl.command WHERE status = 'expired'"), "tombstones")
	v, err := nodes[0].Admin().Verify(t.Context(), transitions.DefaultTenant, [16]byte{})
	assert.Truef(t, err == nil && len(v.Broken) == 0, "%+v, %v", v, err)
}

// An engine runs retention and reports its progress.
func TestAnEngineDoesRetention(t *testing.T) {
	t.Parallel()
	pool := database(t)
	off := newEngine(t, pool, func(c *engine.Config) { c.Retention.Off = true })
	if s, err := off.Admin().Retention(t.Context()); err != nil || s.Node != "" {
		t.Errorf("%+v, %v", s, err)
	}
	e := newEngine(t, pool)
	eventually(t, "it works", func() bool { return e.Admin().RetentionStats().Batches > 0 })
	s, err := off.Admin().Retention(t.Context())
	assert.Truef(t, err == nil && s.Node != "" && s.Since != nil && s.Until != nil && len(s.Partitions) >= 5 &&
		strings.HasPrefix(s.Partitions[0].Name, "command_history_"),
		"%+v, %v", s, err)
	assert.Equal(t, int64(0), off.Admin().RetentionStats().Batches, "the other one, too")
}

func TestEventsAreKeptForADayAtLeast(t *testing.T) {
	t.Parallel()
	pool := database(t)
	for kept, ok := range map[time.Duration]bool{-time.Hour: false, time.Nanosecond: false, 24*time.Hour - 1: false, 24 * time.Hour: true,
		0: true} {
		_, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}, Retention: engine.RetentionConfig{Outbox: kept}})
		assert.Truef(t, ok == (err == nil) && (err == nil || strings.Contains(err.Error(), "Config.Retention.Outbox is less than 24h0m0s")),
			"%s: %v", kept, err)
	}
}
