package inflight

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestDueWorkIsDoneAndEnded(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var seen workflow.Attempt
	w := job(t, func(_ context.Context, a *workflow.Attempt, asked string) (string, error) {
		seen = *a
		return "did " + asked, nil
	})
	r := due("a")
	insert(t, pool, r)
	n := startNode(t, pool, w)
	eventually(t, "it is done", func() bool { return len(n.ended()) == 1 && n.Stats().Busy == 0 })
	got := read(t, pool, r.ref())
	assert.Equalf(t, transitions.Succeeded, got.Status, "it is %+v", got.Record)
	o := n.ended()[0].Resumed
	assert.Truef(t, string(o.Outcome.Result) == `{"text":"did a"}` && o.Attempt == 1 && o.Phase == transitions.Working,
		"ended by attempt %d in phase %s with %s", o.Attempt, o.Phase, o.Outcome.Result)
	assert.Truef(t, seen.Key == transitions.EffectKey(r.ref()) && seen.Number == 1 && seen.Tenant == "acme" &&
		seen.Instance == r.Instance && seen.Actor == "ann", "the activity saw %+v", seen)
	s := n.Stats()
	assert.Truef(t, s.Claimed == 1 && s.Succeeded == 1 && s.Held == 0, "counted %+v", s)
}

// The claim of another node is not committed when this one looks: it finds the
// candidate, and does not get it.
func TestUncommittedClaimIsSkipped(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, atOnce)
	r := due("a")
	insert(t, pool, r)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	rows, err := tx.Query(t.Context(), pgtest.SQL(store.ClaimSQL), r.Tenant, "other", int64(60_000_000), time.Now(), []string{r.Scope},
		[]string{r.Key}, []int32{0})
	require.NoError(t, err)
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (decide.InFlight, error) {
		return store.ScanClaim(row, r.Tenant)
	})
	require.Truef(t, err == nil && len(got) == 1, "the other claimed %d: %v", len(got), err)
	n := startNode(t, pool, w)
	eventually(t, "it has tried to claim", func() bool { return n.asked.Count("WITH claimed") > 0 && n.Stats().Polls > 1 })
	require.NoError(t, tx.Commit(t.Context()))
	looks := n.Stats().Polls
	n.Wake()
	eventually(t, "it has looked again", func() bool { return n.Stats().Polls > looks })
	s := n.Stats()
	assert.Truef(t, s.Claimed == 0 && s.Busy == 0, "it claimed %d, and %d are busy", s.Claimed, s.Busy)
	if got := read(t, pool, r.ref()); got.ClaimedBy != "other" || got.Attempt != 1 {
		t.Errorf("the row is at attempt %d of %s", got.Attempt, got.ClaimedBy)
	}
}

// The second look after its end takes it; how often there is one, others test.
func TestExpiredLease_TakenOver(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	dead := due("a", leased("dead", 400*time.Millisecond))
	alive := due("b", leased("alive", time.Hour))
	insert(t, pool, dead, alive)
	var mu sync.Mutex
	var looks []time.Time // by the database's clock
	n := startNode(t, pool, job(t, atOnce), func(c *Config) {
		c.Clock = clock{c.Clock.Now, func(theirs, _, _ time.Time) {
			mu.Lock()
			defer mu.Unlock()
			looks = append(looks, theirs)
		}}
	})
	eventually(t, "it has ended", func() bool { return len(n.ended()) == 1 })
	n.atRest(t)
	got := read(t, pool, dead.ref())
	mu.Lock()
	looks = slices.DeleteFunc(looks, func(at time.Time) bool { return at.Before(dead.LockedUntil) || at.After(got.ClaimedAt) })
	mu.Unlock()
	if got.ClaimedAt.Before(dead.LockedUntil) || len(looks) > 3 { // one may have been in that very moment
		t.Errorf("taken over at %s, after the lease ran out at %s, and looks at %s", got.ClaimedAt, dead.LockedUntil, looks)
	}
	assert.Truef(t, got.Attempt == 2 && got.Failures == 1 && got.Failure == "the worker was lost: the lease of dead ran out",
		"attempt %d after %d failures: %s", got.Attempt, got.Failures, got.Failure)
	s := n.Stats()
	assert.Truef(t, s.TakenOver == 1 && s.Claimed == 1, "counted %+v", s)
	if n.log.Count("took over a command whose lease had run out tenant=acme scope=job:1 key=a") != 1 || n.log.Count("from=dead") != 1 {
		t.Errorf("logged %q", n.log.List())
	}
	if got := read(t, pool, alive.ref()); got.Attempt != 1 || got.ClaimedBy != "alive" {
		t.Errorf("a lease that lasts was taken: attempt %d of %s", got.Attempt, got.ClaimedBy)
	}
}

// However much is due, whose worker is lost does not wait behind it.
func TestTakeoversComeBeforeWhatIsDue(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	for i := range 20 {
		insert(t, pool, due(fmt.Sprint(i)))
	}
	lost := due("lost", leased("dead", -time.Second))
	insert(t, pool, lost)
	n := newNode(t, pool, job(t, g.work), workers(1))
	n.poller.contact.lapsed = map[transitions.Ref]int{lost.ref(): 1} // a look before has seen it
	n.Start()
	first := await.Receive(t, "the first attempt", g.begun)
	assert.Equal(t, transitions.EffectKey(lost.ref()), first.Key, "something else was done first")
	for range 21 {
		g.tell <- ""
	}
	eventually(t, "all are done", func() bool { return len(n.ended()) == 21 })
}

// Nor is it behind its own tenant's, of which none can be taken: those are of an activity
// that has all the workers that it may have, or of a workflow that is known elsewhere.
func TestATurnGoesPastWhatCannotBeTaken(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, r := range []struct {
		tenant, workflow, transition string
		count                        int
	}{{"b", "job", "run", 2000}, {"c", "elsewhere", "run", 300}, {"c", "job", "busy", 300}, {"c", "job", "run", 1}} {
		exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request,
				attempt, failures, revision, run_at, created_at, updated_at)
			SELECT $1, $2 || ':' || n, $3, decode(repeat('00', 32), 'hex'), 'pending', 'working', $2, $3, gen_random_uuid(), 'a',
				'{"payload":{},"roles":["*"]}', 0, 0, 0, now() - interval '1 hour' + count(*) OVER () * interval '-1 second', now(), now()
			FROM generate_series(1, $4::int) n`, r.tenant, r.workflow, r.transition, r.count)
	}
	n := newNode(t, pool, job(t, atOnce))
	found, err := n.findDue(t.Context(), store.PollRequest{Now: time.Now(), Works: 5, Full: []string{"job busy"},
		Workflows: n.config.Workflows, Turns: store.Turns{Most: 10}})
	require.NoError(t, err)
	turns := map[string]activity{}
	for _, c := range found {
		if c.Kind == store.Turn {
			turns[c.Tenant] = slotOf(&c)
		}
	}
	assert.Truef(t, len(turns) == 2 && turns["b"].transition == "run" && turns["c"] == (activity{"job", "run"}), "the turns are %+v", turns)
}

// A tenant's single command is not behind the thousands of another, which have been
// due for longer.
func TestTenantsHaveTheirTurns(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	order := make(chan string, 4000)
	w := job(t, func(_ context.Context, a *workflow.Attempt, _ string) (string, error) {
		order <- a.Tenant
		return "", nil
	})
	exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request,
			attempt, failures, revision, run_at, created_at, updated_at)
		SELECT 'big', 'job:' || n, '1', decode(repeat('00', 32), 'hex'), 'pending', 'working', 'job', 'run', gen_random_uuid(), 'ann',
			'{"payload":{}}', 0, 0, 0, now() - interval '1 hour' + n * interval '1 ms', now(), now() FROM generate_series(1, 3000) n`)
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
		SELECT tenant, instance, 'job', 1, 'running', 1, '{}', true, decode(repeat('00', 32), 'hex'), now(), now() FROM pawl.command`)
	for _, tenant := range []string{"a", "c"} { // one before and one after it
		insert(t, pool, due(tenant, func(r *row) { r.Tenant = tenant }))
	}
	// Their work is not due, however much of it there is.
	for i := range 50 {
		insert(t, pool, due(fmt.Sprint(i), func(r *row) { r.Tenant, r.RunAt = fmt.Sprint("later-", i), time.Now().Add(time.Hour) }))
	}
	n := startNode(t, pool, w, workers(1))
	for _, tenant := range []string{"a", "c"} {
		seen := 0
		for await.Receive(t, "the small one is begun", order) != tenant {
			seen++
		}
		assert.Truef(t, seen <= 20, "%s was begun after %d of another", tenant, seen)
	}
	t.Logf("%d looks", n.Stats().Polls)
}

// Nor is its single timer behind thousands of another's.
func TestScheduled_RoundRobinTenants(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	const many = 4_000
	exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request,
			attempt, failures, revision, run_at, created_at, updated_at)
		SELECT 'big', 'pawl:timer:' || n, '1', decode(repeat('00', 32), 'hex'), 'pending', 'scheduled', 'job', 'expire', gen_random_uuid(),
			'pawl:timer',
			'{"payload":{},"roles":["*"]}', 0, 0, 0, now() - interval '1 hour' + n * interval '1 ms', now(), now() FROM generate_series(1, $1) n`,
		many)
	small := []string{"a", "c"} // one before and one after it
	for _, tenant := range small {
		insert(t, pool, due(tenant, scheduled, func(r *row) { r.Tenant = tenant }))
	}
	// Theirs are not due, however many there are, or of no workflow that this node knows.
	for i := range 50 {
		insert(t, pool, due(fmt.Sprint(i), scheduled, func(r *row) { r.Tenant, r.RunAt = fmt.Sprint("later-", i), time.Now().Add(time.Hour) }),
			due(fmt.Sprint("strange ", i), scheduled, func(r *row) { r.Tenant, r.Workflow = fmt.Sprint("b-", i), "strange" }))
	}
	n := startNode(t, pool, job(t, atOnce))
	eventually(t, "all are decided", func() bool { return len(n.ended()) == many+len(small) })
	for _, tenant := range small {
		before := slices.IndexFunc(n.ended(), func(p *decide.Prepared) bool { return p.Tenant == tenant })
		most := 2*dueAtOnce + dueBatch
		assert.Truef(t, before <= most, "%s was decided after %d of another, and not after %d at most", tenant, before, most)
	}
	t.Logf("%d looks", n.Stats().Polls)
}

// Where the turns of many tenants have come to, they go on.
func TestTurnsGoOnWhereTheyEnded(t *testing.T) {
	turn := func(tenant, key, pause string) store.Candidate {
		return store.Candidate{Ref: transitions.Ref{Tenant: tenant, Key: key}, Kind: store.LaterTurn, Pause: pause}
	}
	u := turns{kind: store.LaterTurn}
	assert.Equal(t, (store.Turns{}), u.next(100), "without a backlog a poll asks for")
	u.taken(store.Turns{}, nil, nil, true)
	asked := u.next(dueBatch)
	assert.Equal(t, (store.Turns{Most: mostTurns}), asked, "the first turns")
	found := []store.Candidate{turn("a", "", ""), turn("b", "k", ""), turn("c", "k", "workflow:w"), turn("d", "k", ""), turn("e", "k", "")}
	u.taken(store.Turns{Most: 5}, found, []store.Candidate{found[1]}, true)
	assert.Equal(t, "c", u.last, "b was served, c is paused and d was not taken; the turns go on after")
	u.taken(store.Turns{After: "c", Most: 5}, found[3:], found[3:], true)
	assert.Equal(t, "", u.last, "there was nobody after e; the turns go on after")
}

func TestWorkOfAnUnknownWorkflowIsNotTouched(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	strange := func(r *row) { r.Workflow = "strange" }
	rows := []row{due("a", strange), due("b", scheduled, strange), due("c", leased("dead", -time.Second), strange)}
	insert(t, pool, rows...)
	n := startNode(t, pool, job(t, atOnce))
	for looks := range int64(3) {
		eventually(t, "it looks", func() bool { return n.Stats().Polls > looks })
		n.Wake()
	}
	for _, r := range rows {
		got := read(t, pool, r.ref())
		assert.Equalf(t, 1, got.Revision, "%s is %+v", r.Key, got.Record)
	}
	s := n.Stats()
	assert.Equalf(t, int64(0), s.Claimed, "counted %+v", s)
}

func TestActivityLimit(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var mu sync.Mutex
	running, most := 0, 0
	gate := make(chan struct{})
	w := job(t, func(ctx context.Context, _ *workflow.Attempt, asked string) (string, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		select {
		case <-gate:
		case <-ctx.Done():
		}
		mu.Lock()
		defer mu.Unlock()
		running--
		return "", ctx.Err()
	}, func(a *activityOfText) { a.Concurrency(2) })
	for i := range 8 { // more than there are workers: they fill the first answer to a look
		insert(t, pool, due(fmt.Sprint(i)))
	}
	other := due("other", scheduled)
	insert(t, pool, other)
	n := startNode(t, pool, w, workers(4))
	becomes(t, pool, other.ref(), "the scheduled command behind them is decided",
		func(r row) bool { return r.Status == transitions.Succeeded })
	eventually(t, "two run", func() bool { mu.Lock(); defer mu.Unlock(); return running == 2 })
	assert.False(t, n.Reserve(w.Name, w.Named("run")[0]), "a third worker was reserved")
	close(gate)
	eventually(t, "all are done", func() bool { return len(n.ended()) == 9 })
	assert.Equal(t, 2, most, "ran at once")
}

// everything is a node's definitions in which all workflows are the same except for their names.
type everything struct{ known }

func (e everything) Versions(string) []*workflow.Workflow { return []*workflow.Workflow{e.w} }

// An accept that was not heard may have leased its command, or have done nothing, and another one with the same key since:
// that is told by when the command was created.
func TestAmbiguousLease_Released(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, atOnce, func(a *activityOfText) { a.AskOperator() })
	n := startNode(t, pool, w)
	mine, others := due("a", leased(n.name, time.Hour)), due("b", leased(n.name, time.Hour))
	insert(t, pool, mine, others)
	var created time.Time
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT created_at FROM pawl.command WHERE key = 'a'").Scan(&created))
	ambiguous := func(r row, created time.Time) decide.FlightUpdate {
		return decide.FlightUpdate{Ambiguous: true, InFlight: decide.InFlight{Ref: r.ref(), Attempt: 1, CreatedAt: created}}
	}
	before := created.Add(-time.Second)
	n.Updated([]decide.FlightUpdate{ambiguous(others, before), ambiguous(mine, before), ambiguous(mine, created)})
	eventually(t, "it is done", func() bool { return len(n.ended()) > 0 && n.Stats().Busy == 0 })
	if o := n.ended()[0]; len(n.ended()) != 1 || o.Key != "a" || o.Resumed.Attempt != 2 {
		t.Errorf("attempt %d of %s has ended", o.Resumed.Attempt, o.Key)
	}
	got := read(t, pool, others.ref())
	assert.Truef(t, got.Status == transitions.Processing && got.Attempt == 1 && got.Revision == 1, "another's lease is %+v", got.Record)
}

// The commit of an accept may be seen when its answer has long been lost.
func TestAmbiguousLease_PolledUntilExpiry(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	n := startNode(t, pool, job(t, atOnce))
	r := due("a", leased("somebody", time.Hour))
	insert(t, pool, r)
	var created time.Time
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT created_at FROM pawl.command").Scan(&created))
	n.Updated([]decide.FlightUpdate{{Ambiguous: true, InFlight: decide.InFlight{Ref: r.ref(), Attempt: 1, CreatedAt: created}}})
	eventually(t, "it has asked twice", func() bool { return n.asked.Count(heldAsked) > 1 })
	exec(t, pool, "UPDATE pawl.command SET claimed_by = $1", n.name)
	eventually(t, "it is done", func() bool { return len(n.ended()) == 1 && n.Stats().Busy == 0 })
	asked := n.asked.Count(heldAsked)
	polls := n.Stats().Polls
	eventually(t, "it polls twice", func() bool { return n.Stats().Polls > polls+1 })
	if got := n.asked.Count(heldAsked); got > asked+1 { // one may have been under way
		t.Errorf("it has asked %d times more", got-asked)
	}
}

// Where the database reads and does not write, due work is claimed at the regular polls, and not without a pause.
func TestAClaimThatFailsIsTriedAgainAtTheNextPoll(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, `CREATE FUNCTION pawl.refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'no space left on the device' USING ERRCODE = '53100'; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON pawl.command FOR EACH ROW EXECUTE FUNCTION pawl.refuse()`)
	r := due("a")
	insert(t, pool, r)
	n := startNode(t, pool, job(t, atOnce))
	const failed = "cannot poll for due work"
	eventually(t, "a claim fails", func() bool { return n.log.Count(failed) > 0 })
	before, begun := n.log.Count(failed), time.Now()
	await.Pass("it fails again", 2*lookEvery)
	got, most := n.log.Count(failed)-before, int(time.Since(begun)/lookEvery)+3
	assert.Truef(t, got <= most, "it was tried %d times more, of at most %d", got, most)
	exec(t, pool, "DROP TRIGGER refuse ON pawl.command")
	eventually(t, "it is done", func() bool { return len(n.ended()) == 1 && n.Stats().Busy == 0 })
}
