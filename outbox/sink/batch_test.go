package sink_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// events returns a batch with an event for each letter, of the instance of that name.
func events(instances string) []transitions.Logged {
	var batch []transitions.Logged
	for i, name := range []byte(instances) {
		e := transitions.Logged{Event: transitions.Event{Tenant: "acme", Position: int64(i + 1), Instance: uuid.UUID{name}}}
		e.CloudEvent = e.AppendCloudEvent(nil)
		batch = append(batch, e)
	}
	return batch
}

func kinds(failures []*sink.Failure) []sink.Kind {
	var found []sink.Kind
	for _, f := range failures {
		if f == nil {
			found = append(found, "")
		} else {
			found = append(found, f.Kind)
		}
	}
	return found
}

func TestBatchHoldsAfterFailure(t *testing.T) {
	const ok, held = sink.Kind(""), sink.Held
	tests := []struct {
		name      string
		instances string
		fails     map[int]sink.Kind
		want      []sink.Kind
	}{
		{"nothing fails", "abab", nil, nil},
		{"an empty batch", "", nil, nil},
		{"only its instance is held", "abcabc", map[int]sink.Kind{1: sink.Temporary}, []sink.Kind{ok, sink.Temporary, ok, ok, held, ok}},
		{"a permanent failure holds its instance too", "aab", map[int]sink.Kind{0: sink.Permanent}, []sink.Kind{sink.Permanent, held, ok}},
		{"two instances fail", "abab", map[int]sink.Kind{0: sink.Temporary, 3: sink.Permanent},
			[]sink.Kind{sink.Temporary, ok, held, sink.Permanent}},
		{"the receiver as a whole", "abab", map[int]sink.Kind{1: sink.Unavailable}, []sink.Kind{ok, sink.Unavailable, held, held}},
		{"a receiver that is gone", "abc", map[int]sink.Kind{0: sink.Gone}, []sink.Kind{sink.Gone, held, held}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			batch := events(tt.instances)
			var tried []int64
			got := sink.InOrder(t.Context(), batch, func(_ context.Context, e *transitions.Logged) *sink.Failure {
				tried = append(tried, e.Position)
				if kind, fails := tt.fails[int(e.Position)-1]; fails {
					return sink.Fail(kind, nil, "no")
				}
				return nil
			})
			assert.Truef(t, slices.Equal(kinds(got), tt.want), "got %q, want %q", kinds(got), tt.want)
			for i := range batch {
				wasHeld := tt.want != nil && tt.want[i] == held
				assert.NotEqualf(t, wasHeld, slices.Contains(tried, batch[i].Position), "event %d: held, but tried %v", i, !wasHeld)
			}
		})
	}
}

func TestInOrderHoldsAfterContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the node stops")
	got := sink.InOrder(ctx, events("abc"), func(ctx context.Context, e *transitions.Logged) *sink.Failure {
		if e.Position == 2 {
			cancel(reason)
			return sink.CutOff(ctx)
		}
		return nil
	})
	want := []sink.Kind{"", sink.Temporary, sink.Held}
	require.Truef(t, slices.Equal(kinds(got), want), "got %q, want %q", kinds(got), want)
	assert.ErrorIs(t, got[1], reason, "the failure does not tell why the context ended")
}

func TestTogetherHoldsAllButFirst(t *testing.T) {
	got := sink.Together(t.Context(), events("aab"), sink.Fail(sink.Unavailable, nil, "disk full"))
	want := []sink.Kind{sink.Unavailable, sink.Held, sink.Held}
	assert.Truef(t, slices.Equal(kinds(got), want), "got %q, want %q", kinds(got), want)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got = sink.Together(ctx, events("ab"), sink.Fail(sink.Unavailable, nil, "not asked"))
	want = []sink.Kind{sink.Held, sink.Held}
	assert.Truef(t, slices.Equal(kinds(got), want), "after the context: %q, want %q", kinds(got), want)
}

func TestWavesSeparateInstances(t *testing.T) {
	got := sink.Waves(events("abaacb"))
	want := [][]int{{0, 1, 4}, {2, 5}, {3}}
	assert.Truef(t, slices.EqualFunc(got, want, slices.Equal), "got %v, want %v", got, want)
	assert.Empty(t, sink.Waves(nil), "waves of nothing")
	twoTenants := events("aa")
	twoTenants[1].Tenant = "other"
	assert.Len(t, sink.Waves(twoTenants), 1, "one id in two tenants is two instances")
}
