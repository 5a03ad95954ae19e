package client_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// follow reads n events and returns their ids. It calls between after each.
func follow(t testing.TB, c *client.Client, after client.Position, f client.Filter, n int, between func(client.Event)) (ids []string) {
	t.Helper()
	for e, err := range c.Subscribe(t.Context(), after, f) {
		require.NoError(t, err)
		ids = append(ids, e.ID)
		if between != nil {
			between(e)
		}
		if len(ids) == n {
			break
		}
	}
	return ids
}

// idsUpTo returns the ids of the events of a parcel with a number of stamps.
func idsUpTo(stamps int) []string {
	ids := []string{"1-0"}
	for n := range stamps {
		ids = append(ids, fmt.Sprint(n+2, "-0"), fmt.Sprint(n+2, "-1"))
	}
	return ids
}

func TestSubscriptionSurvivesNodes(t *testing.T) {
	t.Parallel()
	i := install(t)
	first, second, third := i.node(nil), i.node(nil), i.node(nil)
	other := dial(t, client.Config{}, third)
	packed(t, other, "A-1")
	stamped(t, other, "A-1", 3)
	c := dial(t, client.Config{}, first, second, third)
	var stopping sync.WaitGroup
	defer stopping.Wait()
	got := follow(t, c, client.Start, client.Filter{}, len(idsUpTo(9)), func(e client.Event) {
		switch e.ID {
		case "3-0": // within a transition, with more events in transit
			first.dies()
			assert.Equal(t, client.Position(2), e.Cursor, "the cursor")
		case "4-1": // at the end of the log
			stamped(t, other, "A-1", 3)
			second.tap.cut()
		case "7-1": // when a node stops
			stamped(t, other, "A-1", 3)
			stopping.Go(func() { _ = third.api.Stop(t.Context()) })
		}
	})
	want := idsUpTo(9)
	assert.Truef(t, slices.Equal(got, want), "got %q, want %q", got, want)
	if got := follow(t, c, 2, client.Filter{Types: []string{"parcel.priced"}}, 2, nil); !slices.Equal(got, []string{"3-1", "4-1"}) {
		t.Errorf("of a filter %q", got)
	}
}

func TestSubscribeFromNow(t *testing.T) {
	t.Parallel()
	i := install(t)
	c := dial(t, client.Config{}, i.node(nil))
	packed(t, c, "A-1")
	ctx, enough := context.WithCancel(t.Context())
	var stamping sync.WaitGroup
	defer stamping.Wait()
	defer enough()
	stamping.Go(func() { // until one arrives after the subscription
		for ctx.Err() == nil {
			_, _ = client.Submit(ctx, c, stamp, client.BusinessKey("parcel", "A-1"), workflow.None{})
		}
	})
	for e, err := range c.Subscribe(t.Context(), client.Now, client.Filter{}) {
		assert.Truef(t, err == nil && e.Transition == "stamp" && e.Position >= 2 && e.Subject == "A-1" && string(e.Data) != "",
			"%+v, %v", e, err)
		break
	}
}

func TestSubscribeReportsRemovedEvents(t *testing.T) {
	t.Parallel()
	i := install(t)
	n := i.node(nil)
	c := dial(t, client.Config{}, n)
	packed(t, c, "A-1")
	stamped(t, c, "A-1", 5)
	remove := func(upTo int) {
		_, err := i.pool.Exec(t.Context(), "DELETE FROM pawl.outbox WHERE position <= $1", upTo)
		require.NoError(t, err)
	}
	remove(3)
	for at, err := range c.Subscribe(t.Context(), 1, client.Filter{}) {
		e := wantCode(t, err, workflow.EventsGone)
		assert.Truef(t, e.Position == 4 && at.Cursor == 3,
			"the first that is there is at %d, and it goes on at %d", e.Position, at.Cursor)
		got := follow(t, c, at.Cursor, client.Filter{}, 1, nil)
		assert.Equalf(t, "4-0", got[0], "it goes on with %q", got)
	}
}

func TestSubscribeRequiresGrant(t *testing.T) {
	t.Parallel()
	i := install(t)
	reads := func(right auth.Right) func(*api.Config) {
		return func(c *api.Config) {
			c.Identify = api.Bearer(func(context.Context, string) (auth.Principal, error) {
				return auth.Principal{Tenant: "default", Actor: "ann", Grants: auth.Grants{{Right: right}}}, nil
			})
		}
	}
	open, closed := i.node(nil), i.node(nil, reads(auth.Read))
	for _, x := range []struct {
		c     *client.Client
		after client.Position
		f     client.Filter
		want  workflow.Code
	}{
		{dial(t, client.Config{}, open), 0, client.Filter{Workflow: "letter"}, workflow.WorkflowNotFound},
		{dial(t, client.Config{}, open), 99, client.Filter{}, workflow.InvalidRequest},
		{dial(t, client.Config{}, open), 0, client.Filter{Instance: "no id"}, workflow.InvalidRequest},
		{dial(t, client.Config{Token: "t"}, closed), 0, client.Filter{}, workflow.Forbidden},
		{dial(t, client.Config{}, closed), 0, client.Filter{}, workflow.Unauthorized},
	} {
		for _, err := range x.c.Subscribe(t.Context(), x.after, x.f) {
			wantCode(t, err, x.want)
		}
	}
}

// desk issues credentials that can be revoked.
type desk struct {
	mu     sync.Mutex
	ends   map[string]chan struct{}
	seen   []string // credentials in the order of their use
	notNow bool     // verification is unavailable
}

func (d *desk) identify(_ context.Context, token string) (auth.Principal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, token)
	end := d.ends[token]
	if d.notNow && len(d.seen) == 2 {
		return auth.Principal{}, workflow.Errorf(workflow.Unavailable, "the keys cannot be read")
	}
	select {
	case <-end:
		return auth.Principal{}, auth.Refuse(auth.Revoked, "the token was taken back")
	default:
		return auth.Principal{Tenant: "default", Actor: "ann", Grants: auth.Grants{{Right: auth.Stream}, {Right: auth.Read}},
			Until: time.Now().Add(time.Hour), Ended: end}, nil
	}
}

func (d *desk) has(tokens ...string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Equal(d.seen, tokens)
}

// A credential that is revoked, or expires before another is presented, costs a connection and no
// event.
func TestSubscriptionReconnectsWithNewCredential(t *testing.T) {
	t.Parallel()
	i := install(t)
	d := &desk{ends: map[string]chan struct{}{"one": make(chan struct{}), "two": make(chan struct{})}}
	with := func(c *api.Config) { c.Identify = api.Bearer(d.identify) }
	open, guarded := i.node(nil), i.node(nil, with)
	other := dial(t, client.Config{}, open)
	packed(t, other, "A-1")
	source := func(context.Context) (string, error) {
		select {
		case <-d.ends["one"]:
			return "two", nil
		default:
			return "one", nil
		}
	}
	c := dial(t, client.Config{TokenSource: source}, guarded)
	got := follow(t, c, client.Start, client.Filter{}, 5, func(e client.Event) {
		if e.ID == "1-0" {
			await.Eventually(t, "the credential was shown again", func() bool { return d.has("one", "one") })
			close(d.ends["one"])
			stamped(t, other, "A-1", 2)
		}
	})
	assert.Truef(t, slices.Equal(got, idsUpTo(2)) && (d.has("one", "one", "two", "two") || d.has("one", "one", "two")),
		"got %q with %q", got, d.seen)
}

// Another credential is presented on the same connection before the first expires.
func TestConnectionReceivesNewCredential(t *testing.T) {
	t.Parallel()
	i := install(t)
	d := &desk{ends: map[string]chan struct{}{"1": make(chan struct{}), "2": make(chan struct{}), "3": make(chan struct{})}, notNow: true}
	open, guarded := i.node(nil), i.node(nil, func(c *api.Config) { c.Identify = api.Bearer(d.identify) })
	other := dial(t, client.Config{}, open)
	packed(t, other, "A-1")
	shown := 0
	c := dial(t, client.Config{TokenSource: func(context.Context) (string, error) { shown++; return fmt.Sprint(shown), nil }}, guarded)
	// A credential is presented at once to learn its expiry, then cannot be verified, and is
	// presented again after a delay.
	got := follow(t, c, client.Start, client.Filter{}, 3, func(e client.Event) {
		if e.ID == "1-0" {
			await.Eventually(t, "three credentials were shown", func() bool { return d.has("1", "2", "3") })
			close(d.ends["1"]) // no longer valid
			close(d.ends["2"])
			stamped(t, other, "A-1", 1)
		}
	})
	assert.Truef(t, slices.Equal(got, idsUpTo(1)) && d.has("1", "2", "3"), "got %q with %q", got, d.seen)
}

// ours returns the client's goroutines.
func ours() (stacks []string) {
	buf := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "/client/link.go") || strings.Contains(g, "net/http.(*persistConn)") {
			stacks = append(stacks, g)
		}
	}
	return stacks
}

// Not parallel, because it inspects all goroutines.
func TestEndedLoopLeavesNoGoroutines(t *testing.T) {
	i := install(t)
	d := &desk{}
	n := i.node(nil, func(c *api.Config) {
		c.Identify = api.Bearer(func(ctx context.Context, token string) (auth.Principal, error) {
			p, err := d.identify(ctx, token)
			p.Grants = append(p.Grants, auth.Grant{Right: auth.Submit})
			p.Roles = []string{"*"}
			return p, err
		})
	})
	c := dial(t, client.Config{TokenSource: func(context.Context) (string, error) { return "t", nil }}, n)
	packed(t, c, "A-1")
	stamped(t, c, "A-1", 2)
	gone := func(what string) {
		t.Helper()
		c.Close()
		await.Eventually(t, what+" leaves nothing", func() bool { return n.open.Load() == 0 && len(ours()) == 0 })
	}
	follow(t, c, client.Start, client.Filter{}, 2, nil)
	gone("a reader")
	func() {
		defer func() { _ = recover() }()
		follow(t, c, client.Start, client.Filter{}, 2, func(client.Event) { panic("the loop has a defect") })
	}()
	gone("a panic")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	errEnough := errors.New("enough")
	var last error
	for e, err := range c.Subscribe(ctx, 1, client.Filter{}) {
		if last = err; e.ID == "3-1" {
			cancel(errEnough) // it waits for more
		}
	}
	assert.Truef(t, errors.Is(last, errEnough) && workflow.CodeOf(last) == workflow.TimedOut, "the end is %v", last)
	gone("the end of the context")
	for range c.Instances(t.Context(), client.InstanceFilter{}) {
		break
	}
	began := must[client.Receipt](t)(client.Submit(t.Context(), c, deliver, client.BusinessKey("parcel", "A-1"), Deliver{}))
	for range c.Watch(t.Context(), began.Command.Scope, began.Key) {
		break
	}
	watching, leave := context.WithCancelCause(t.Context())
	defer leave(nil)
	for _, err := range c.Watch(watching, began.Command.Scope, began.Key) {
		if last = err; err == nil {
			leave(errEnough)
		}
	}
	assert.ErrorIs(t, last, errEnough, "the end of a watch")
	gone("whoever else")
	i.courier <- nil
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	i := install(t)
	w := &witness{}
	c := dial(t, client.Config{}, i.node(w.around))
	var cmds []client.Command
	for n := range 250 {
		cmds = append(cmds, client.CommandOf(pack, client.NewInstance, Pack{To: "Graz", Number: fmt.Sprint("A-", n)}))
	}
	for range 150 {
		cmds = append(cmds, client.CommandOf(stamp, client.BusinessKey("parcel", "A-7"), workflow.None{}))
	}
	for _, r := range c.SubmitMany(t.Context(), cmds) {
		require.NoError(t, r.Err)
	}
	stamped(t, c, "A-7", 1)
	w.seen()
	open, seen := true, map[string]bool{}
	for inst, err := range c.Instances(t.Context(), client.InstanceFilter{Workflow: "parcel", States: []workflow.State{"packed"}, Open: &open,
		Definition:   1,
		CreatedAfter: time.Now().Add(-time.Hour), UpdatedBefore: time.Now().Add(time.Hour)}) {
		require.NoError(t, err)
		seen[inst.BusinessKey] = true
	}
	requests := len(w.seen())
	assert.Truef(t, len(seen) == 250 && requests == 3, "%d instances in %d requests", len(seen), requests)
	for inst, err := range c.Instances(t.Context(), client.InstanceFilter{NewestUpdateFirst: true}) {
		assert.Truef(t, err == nil && inst.BusinessKey == "A-7", "the newest is %q, %v", inst.BusinessKey, err)
		break
	}
	version := int64(1)
	for e, err := range c.History(t.Context(), client.BusinessKey("parcel", "A-7"), version) {
		if version++; err != nil || e.Version != version {
			t.Fatalf("version %d: %+v, %v", version, e, err)
		}
	}
	assert.Equal(t, int64(152), version, "the last version")
	for _, err := range c.Instances(t.Context(), client.InstanceFilter{Workflow: "letter"}) {
		wantCode(t, err, workflow.WorkflowNotFound)
	}
	me, err := c.Me(t.Context(), "read:parcel")
	assert.Truef(t, err == nil && me.Actor == "local" && me.Can.Allowed, "%+v, %v", me, err)
	options, err := c.Options(t.Context(), client.BusinessKey("parcel", "A-7"))
	assert.Truef(t, err == nil && len(options.Transitions) == 3, "%+v, %v", options, err)
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	source := func(context.Context) (string, error) { return "", nil }
	for _, c := range []client.Config{{}, {URLs: []string{"localhost:8080"}}, {URLs: []string{"http://a?b=c"}}, {URLs: []string{"ftp://a"}},
		{URLs: []string{"http://a"}, Token: "t", TokenSource: source}, {URLs: []string{"http://a", "https://ann:sesame@b"}},
		{URLs: []string{"https://ann:sesame@b?c=d"}}, {URLs: []string{"https://ann:sesame@%zz"}}} {
		_, err := client.New(c)
		if err == nil {
			t.Errorf("%+v is taken", c)
		} else if strings.Contains(err.Error(), "sesame") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

func TestCredentialNeedsTLS(t *testing.T) {
	source := func(context.Context) (string, error) { return "secret", nil }
	for url, open := range map[string]bool{
		"https://pawl.example": false, "http://localhost:8080": false, "http://LOCALHOST": false, "http://127.0.0.1:8080": false,
		"http://127.9.9.9": false, "http://[::1]:8080": false, "http://[::ffff:127.0.0.1]": false,
		"http://pawl.example": true, "http://10.0.0.1:8080": true, "http://localhost.pawl.example": true, "http://127.0.0.1.pawl.example": true,
		"http://[::2]": true, "http://2130706433": true,
	} {
		for _, tt := range []struct {
			config  client.Config
			refused bool
		}{
			{client.Config{Token: "secret"}, open},
			{client.Config{TokenSource: source}, open},
			{client.Config{Token: "secret", PlainHTTP: true}, false},
			{client.Config{}, false},
		} {
			tt.config.URLs = []string{"https://first.example", url}
			_, err := client.New(tt.config)
			if errors.Is(err, client.ErrPlainHTTP) != tt.refused || err != nil && (!tt.refused || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%s with %+v: %v", url, tt.config, err)
			}
		}
	}
}
