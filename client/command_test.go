package client_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestCommandTypedOrByName(t *testing.T) {
	t.Parallel()
	i := install(t)
	c := dial(t, client.Config{}, i.node(nil))
	made := packed(t, c, "A-1")
	assert.Truef(t, made.Status == 201 && made.Version == 1 && made.Position == 1 && !made.Replayed && made.Key != "", "%+v", made)
	typed := must[client.Receipt](t)(client.Submit(t.Context(), c, stamp, client.ID(made.Instance), workflow.None{}))
	byName := client.Command{Workflow: "parcel", Transition: "stamp", On: client.BusinessKey("parcel", "A-1"), Key: `"twice" `, IfVersion: 2}
	for _, replayed := range []bool{false, true} {
		r := must[client.Receipt](t)(c.Submit(t.Context(), byName))
		result, err := r.Result()
		assert.Truef(t, r.Replayed == replayed && r.Version == 3 && err == nil && result.Transition == "stamp" && typed.Version == 2,
			"%+v, %v", r, err)
	}
	view := must[Parcel](t)(client.Decode[Parcel](must[client.InstanceView](t)(c.Instance(t.Context(),
		client.BusinessKey("parcel", "A-1"))).Data))
	assert.Truef(t, view.Stamped == 2 && view.To == "Graz", "%+v", view)
}

// A reason may be any text and is part of the request.
func TestCommandReason(t *testing.T) {
	t.Parallel()
	i := install(t)
	c := dial(t, client.Config{}, i.node(nil))
	made := packed(t, c, "A-1")
	const reason = " she called:\n100% \"sure\" – ж "
	cmd := client.Command{Transition: "stamp", On: client.ID(made.Instance), Key: "k", Reason: reason}
	first := must[client.Receipt](t)(c.Submit(t.Context(), cmd))
	many := c.SubmitMany(t.Context(), []client.Command{cmd, {Transition: "stamp", On: cmd.On, Key: "m", Reason: reason}})
	assert.Truef(t, many[0].Err == nil && many[0].Receipt.Version == first.Version && many[0].Receipt.Replayed && many[1].Err == nil,
		"%+v", many)
	other := cmd
	other.Reason = "another"
	_, err := c.Submit(t.Context(), other)
	wantCode(t, err, workflow.KeyReused)
	for _, bad := range []string{"\xff", "\x00", strings.Repeat("x", transitions.MaxReason+1)} {
		_, err := c.Submit(t.Context(), client.Command{Transition: "stamp", On: cmd.On, Reason: bad})
		wantCode(t, err, workflow.InvalidRequest)
	}
	n := 0
	for e, err := range c.History(t.Context(), cmd.On, 1) {
		if n++; err != nil || e.Reason != reason {
			t.Errorf("%+v, %v", e, err)
		}
	}
	assert.Equal(t, 2, n, "entries")
}

func TestRefusalReturnsCode(t *testing.T) {
	t.Parallel()
	i := install(t)
	c := dial(t, client.Config{}, i.node(nil))
	packed(t, c, "A-1")
	r, err := client.Submit(t.Context(), c, lose, client.BusinessKey("parcel", "A-1"), workflow.None{})
	e := wantCode(t, err, workflow.IllegalTransition)
	assert.Truef(t, e.Code.Info().Final && e.State == "packed" && slices.Equal(e.Allowed, []string{"stamp", "deliver"}) &&
		r.Status == 409 && r.Key != "" && workflow.CodeOf(r.Err()) == workflow.IllegalTransition,
		"%+v, %+v", e, r)
	_, err = client.Submit(t.Context(), c, pack, client.NewInstance, Pack{Number: "A-2"})
	e = wantCode(t, err, workflow.InvalidPayload)
	assert.Truef(t, len(e.Fields) == 1 && e.Fields[0].Pointer == "/to", "%+v", e)
	for want, cmd := range map[workflow.Code]client.Command{
		workflow.KeyInvalid:         {Workflow: "parcel", Transition: "pack", Key: "a\nb"},
		workflow.ScopeInvalid:       {Workflow: "parcel", Transition: "pack", Scope: "a\nb"},
		workflow.InvalidRequest:     {Workflow: "parcel", Transition: "stamp", On: client.BusinessKey("letter", "A-1")},
		workflow.WorkflowNotFound:   {Workflow: "letter", Transition: "write"},
		workflow.TransitionNotFound: {Workflow: "parcel", Transition: "burn"},
		workflow.VersionConflict:    {Transition: "stamp", On: client.BusinessKey("parcel", "A-1"), IfVersion: 9},
		workflow.InvalidPayload:     {Workflow: "parcel", Transition: "pack", Payload: func() {}},
	} {
		_, err := c.Submit(t.Context(), cmd)
		wantCode(t, err, want)
	}
}

// witness is a proxy that records the keys of requests and drops the first responses.
type witness struct {
	mu   sync.Mutex
	lose int
	keys []string
}

func (s *witness) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
		lost := s.lose > 0
		s.lose--
		s.mu.Unlock()
		if !lost {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&discarded{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	})
}

// seen returns the keys since the last call.
func (s *witness) seen() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, s.keys = s.keys, nil
	return keys
}

// discarded discards a response.
type discarded struct{ header http.Header }

func (u *discarded) Header() http.Header         { return u.header }
func (u *discarded) Write(b []byte) (int, error) { return len(b), nil }
func (u *discarded) WriteHeader(int)             {}

func TestLostResponseIsRetriedWithSameKey(t *testing.T) {
	t.Parallel()
	i := install(t)
	w := &witness{lose: 2}
	c := dial(t, client.Config{}, i.node(w.around))
	r := packed(t, c, "A-1")
	keys := w.seen()
	assert.Truef(t, len(keys) == 3 && keys[0] == r.Key && len(slices.Compact(slices.Clone(keys))) == 1,
		"sent with the keys %q, and the receipt has %q", keys, r.Key)
	assert.Truef(t, r.Replayed && r.Status == 201 && r.Version == 1, "%+v", r)
	packed(t, c, "A-2")
	others := w.seen()
	assert.Truef(t, len(others) == 1 && others[0] != keys[0], "another intent has the keys %q", others)
}

func TestSubmitMany(t *testing.T) {
	t.Parallel()
	i := install(t)
	w := &witness{lose: 1}
	c := dial(t, client.Config{}, i.node(w.around))
	var cmds []client.Command
	for n := range 1100 {
		cmds = append(cmds, client.CommandOf(pack, client.NewInstance, Pack{To: "Graz", Number: fmt.Sprint("A-", n)}))
	}
	cmds = append(cmds, client.Command{Transition: "lose", On: client.BusinessKey("parcel", "A-0"), TombstoneFor: 48 * time.Hour,
		ReplayFor: time.Hour},
		client.Command{Transition: "stamp", On: client.BusinessKey("parcel", "A-1"), IfVersion: 1, Scope: "mine",
			NotBefore: time.Now().Add(-time.Minute)},
		client.Command{Transition: "stamp", Payload: func() {}}, client.Command{})
	replies := c.SubmitMany(t.Context(), cmds)
	for n, r := range replies[:1100] {
		require.Truef(t, r.Err == nil && r.Receipt.Status == 201 && r.Receipt.Key == cmds[n].Key && r.Receipt.Replayed == (n < 1000),
			"%d: %+v", n, r)
	}
	wantCode(t, replies[1100].Err, workflow.IllegalTransition)
	r := replies[1101]
	assert.Truef(t, r.Err == nil && r.Receipt.Version == 2, "%+v", r)
	wantCode(t, replies[1102].Err, workflow.InvalidPayload)
	wantCode(t, replies[1103].Err, workflow.InvalidRequest)
	if requests := len(w.seen()); requests != 3 { // the first response is lost
		t.Errorf("%d requests", requests)
	}
}

func TestWaitForCompletion(t *testing.T) {
	t.Parallel()
	i := install(t)
	n := i.node(nil)
	c := dial(t, client.Config{}, n, i.node(nil))
	packed(t, c, "A-1")
	on := client.BusinessKey("parcel", "A-1")
	began := must[client.Receipt](t)(client.Submit(t.Context(), c, deliver, on, Deliver{By: "ann"}))
	require.Truef(t, began.InFlight() && began.Command.Key == began.Key && began.Version == 2, "%+v", began)
	var seen []string
	end := sync.OnceFunc(func() {
		n.dies() // the watch continues
		i.courier <- nil
	})
	for s, err := range c.Watch(t.Context(), began.Command.Scope, began.Key) {
		require.NoError(t, err)
		seen = append(seen, string(s.Status))
		if s.Status == transitions.Processing {
			end()
		}
	}
	assert.Truef(t, seen[len(seen)-1] == "succeeded" && slices.Contains(seen, "processing"), "seen are %q", seen)
	r := must[client.Receipt](t)(c.Wait(t.Context(), began.Command.Scope, began.Key))
	result, err := r.Result()
	assert.Truef(t, err == nil && result.State == "delivered" && r.Version == 3 && r.Position == result.Position, "%+v, %v", r, err)
	again := must[client.Receipt](t)(c.SubmitAndWait(t.Context(),
		client.Command{Transition: "deliver", On: on, Key: began.Key, Payload: Deliver{By: "ann"}}))
	assert.Truef(t, string(again.Body) == string(r.Body) && again.Replayed, "a duplicate gets %s, and not %s", again.Body, r.Body)
}

func TestWaitReturnsFinalFailure(t *testing.T) {
	t.Parallel()
	i := install(t)
	c := dial(t, client.Config{}, i.node(nil))
	packed(t, c, "A-1")
	go func() { i.courier <- errNobodyHome }()
	r, err := c.SubmitAndWait(t.Context(), client.CommandOf(deliver, client.BusinessKey("parcel", "A-1"), Deliver{By: "ann"}))
	e := wantCode(t, err, workflow.ActivityFailed)
	assert.Truef(t, strings.Contains(e.Message, errNobodyHome.Error()) && r.Status == 409, "%+v, %v", r, err)
	_, err = c.Wait(t.Context(), "parcel", "nobody has sent this")
	wantCode(t, err, workflow.CommandNotFound)
	began := must[client.Receipt](t)(client.Submit(t.Context(), c, deliver, client.BusinessKey("parcel", "A-1"), Deliver{}))
	s, err := c.Cancel(t.Context(), began.Command.Scope, began.Key)
	assert.Truef(t, err == nil && s.CancelledBy != "", "%+v, %v", s, err)
	_, err = c.Wait(t.Context(), began.Command.Scope, began.Key)
	wantCode(t, err, workflow.CommandCancelled)
}
