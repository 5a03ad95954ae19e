package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

// past is what full tables say has happened: which instances there are, and what
// was asked of each, when. It is a function of its few numbers, so that any of its
// commands can be asked again without having been remembered.
//
// Instances come in cohorts. One cohort begins, goes through all its transitions
// in turns, and then rests; then comes the next. So the rows lie in the tables as
// they do where orders live for some days: by time, those of one instance apart.
type past struct {
	instances int
	cohort    int       // how many instances a cohort has
	due       int       // of how many cohorts, the first ones, the answers have expired
	end       time.Time // when it was over: about now
}

// commandsEach is how many commands an instance has: it is placed, and flipped.
const commandsEach = 10

// maxCohort is how many instances a cohort has, at most.
const maxCohort = 1000

// dueShare is which part of the cohorts is due in each round.
const dueShare = 10

// replayFor is how long answers are replayed from when they were given, the
// engine's default.
const replayFor = 24 * time.Hour

// unhurried is how long nothing of a past becomes due after it was loaded, beyond
// what is due from the start.
const unhurried = 2 * time.Hour

func newPast(commands, rounds int, now time.Time) *past {
	p := &past{instances: commands / commandsEach, end: now.UTC().Truncate(time.Microsecond)}
	p.cohort = max(1, min(maxCohort, p.instances/(4*dueShare)))
	p.due = rounds * p.cohorts() / dueShare
	return p
}

func (p *past) cohorts() int { return (p.instances + p.cohort - 1) / p.cohort }

// tenantOf is whose the i-th instance is. Every second cohort is of the tenant that
// all scenarios use: tenants are not of one size.
func (p *past) tenantOf(i int) string {
	if n := i / p.cohort; n%2 == 1 {
		return fmt.Sprintf("tenant-%03d", n/2%3)
	}
	return tenant
}

// at is when the n-th cohort was decided. The answers of those that are due have
// expired within the last day; the others' expire within the next.
func (p *past) at(n int) time.Time {
	part := func(k, of int, d time.Duration) time.Duration {
		return time.Duration(float64(d) * float64(k) / float64(of)).Truncate(time.Microsecond)
	}
	if n < p.due {
		return p.end.Add(-2*replayFor + part(n, p.due, replayFor))
	}
	return p.end.Add(-replayFor + unhurried + part(n-p.due, p.cohorts()-p.due, replayFor-unhurried))
}

// pastCaller is a number that no caller has.
const pastCaller = 5000

// command is the n-th command of the i-th instance, counted from 0.
func (p *past) command(i, n int) transitions.Command {
	c := placeAt(i)
	if n > 0 {
		c = p.flip(transitions.InstanceID(p.tenantOf(i), workflowName, orderAt(i).key), i, n)
	}
	c.Tenant = p.tenantOf(i)
	return c
}

// flip is a command that is not the first, of an instance whose id is known.
func (p *past) flip(id uuid.UUID, i, n int) transitions.Command {
	return change(flipping, &order{id: id}, commandKey(pastCaller+n, i))
}

// cohortOf are the commands of the n-th cohort, in their order.
func (p *past) cohortOf(n int) (list []transitions.Command) {
	for turn := range commandsEach {
		for i := n * p.cohort; i < min((n+1)*p.cohort, p.instances); i++ {
			list = append(list, p.command(i, turn))
		}
	}
	return list
}

// fill has an engine decide a past, by a clock that goes with it.
func (e *env) fill(ctx context.Context, p *past) (err error) {
	var now atomic.Pointer[time.Time]
	at := p.at(0)
	now.Store(&at)
	eng, err := e.engine(ctx, engine.Config{Now: func() time.Time { return *now.Load() }}, false)
	defer func() { err = errors.Join(err, e.end()) }()
	if err == nil {
		err = e.db.exec(ctx, withoutAutovacuum(e.db.schema)) // the engine has made the partitions of then
	}
	begun := time.Now()
	for n := 0; err == nil && n < p.cohorts(); n++ {
		at := p.at(n)
		now.Store(&at)
		err = many(ctx, eng, p.cohortOf(n), false)
		if done := float64((n + 1) * p.cohort * commandsEach); (n+1)%100 == 0 {
			e.Progress(fmt.Sprintf("loaded %s commands, %s/s", whole(done), whole(done/time.Since(begun).Seconds())))
		}
	}
	return err
}

// openFull fills the full tables. Each round of each scenario that purges finds
// what it needs.
func openFull(ctx context.Context, e *env, out io.Writer) (_ *env, err error) {
	if e.Rounds > dueShare/2 {
		return nil, fmt.Errorf("bench: Config.Rounds: there is not enough to purge for more than %d on full tables", dueShare/2)
	}
	full := *e
	if full.db, err = openDatabase(ctx, e.URL, fullSchema); err != nil {
		return nil, err
	}
	begun := time.Now()
	full.past, full.orders = newPast(e.Large, e.Rounds, begun), make([]order, len(e.orders))
	if err = full.fill(ctx, full.past); err == nil {
		err = full.db.settle(ctx, 1)
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "Loaded %s commands on %s instances, a tenth of them due for each round, in %v.\n",
			whole(float64(full.past.instances*commandsEach)), whole(float64(full.past.instances)), time.Since(begun).Round(100*time.Millisecond))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: load: %w", err), full.db.close(ctx))
	}
	return &full, nil
}

// random is an order of the tenant that all scenarios use, from a number on.
func (p *past) random(r *rand.Rand, from int) int {
	for {
		if i := from + r.IntN(p.instances-from); p.tenantOf(i) == tenant {
			return i
		}
	}
}

// anyOld are flips of loaded instances, any of them.
func anyOld(e *env, i, _ int) func() transitions.Command {
	r := rand.New(rand.NewPCG(uint64(i), uint64(e.first)))
	k := e.first * 1000 // no key of another round
	return func() transitions.Command {
		o := orderAt(e.past.random(r, 0))
		k++
		return change(flipping, &o, commandKey(firstCaller+i, k))
	}
}

// oldKeysEach is how many old keys a caller has; no round takes as many.
const oldKeysEach = 4096

// oldKeys repeats any of the loaded flips. They and their instances are known in advance, as they are to callers that replay on empty
// tables.
func oldKeys(e *env, i, _ int) func() transitions.Command {
	type old struct {
		instance uuid.UUID
		i, n     int
	}
	r := rand.New(rand.NewPCG(uint64(i), uint64(e.first)))
	var list [oldKeysEach]old
	for k := range list {
		i := e.past.random(r, e.past.due*e.past.cohort)
		list[k] = old{orderAt(i).id, i, 1 + r.IntN(commandsEach-1)}
	}
	k := 0
	return func() transitions.Command {
		one := list[k%len(list)]
		k++
		return e.past.flip(one.instance, one.i, one.n)
	}
}

// purgingNothing is a scenario of one caller that purges where nothing is due: at a
// time that is before everything that is.
func purgingNothing(name string) *scenario {
	return &scenario{name: name, replays: true, open: func(ctx context.Context, e *env) ([]caller, error) {
		return e.connections(ctx, 1, func(conn *pgx.Conn, _ int) (caller, error) {
			return func(ctx context.Context) (int, error) {
				var n int64
				err := conn.QueryRow(ctx, e.db.in("SELECT expired + forgotten + abandoned FROM {pawl}.purge(moment => $1)"), e.past.at(0)).Scan(&n)
				if err == nil && n != 0 {
					err = fmt.Errorf("%d were due", n)
				}
				return 1, err
			}, nil
		})
	}}
}
