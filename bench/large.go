package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

// The scenarios on full tables, and those that they are compared with.
const (
	replayMost  = "Submit: 256 callers, replays"
	fullMost    = "full: Submit, 256 callers"
	fullAny     = "full: Submit, 256 callers, any instance"
	coldReplays = "full: Submit, 256 callers, old keys, first"
	fullReplays = "full: Submit, 256 callers, old keys"
	nothingDue  = "full: purge, nothing due"
	halfRate    = "full: Submit at half of its rate"
	halfPurging = "full: Submit at half, and a purge"
)

// fullSchema holds the full tables of a run.
const fullSchema = benchSchema + "_full"

// dueShare is which part of the loaded commands is due in each round.
const dueShare = 10

// purgeTimes is how much longer a scenario with a purge is measured.
const purgeTimes = 5

// largeScenarios run on empty and on full tables in turns.
func largeScenarios() []*scenario {
	cold := onFull(submitting(coldReplays, replayMost, 256, oldKeys, true))
	cold.once = true
	warm := onFull(submitting(fullReplays, replayMost, 256, oldKeys, true))
	warm.warm = true
	return []*scenario{
		submitting(submitMost, "", 256, flips, false),
		submitting(replayMost, "", 256, replays, true),
		cold,
		onFull(submitting(fullMost, submitMost, 256, flips, false)),
		onFull(submitting(fullAny, submitMost, 256, anyOld, false)),
		warm,
		onFull(purgingNothing(nothingDue)),
		onFull(halved(halfRate, "", 256, company{})),
		onFull(halved(halfPurging, halfRate, 256, company{purging: true})),
	}
}

func onFull(s *scenario) *scenario {
	s.full = true
	return s
}

// openFull loads the full tables. Each round of each scenario that purges finds
// what it needs.
func openFull(ctx context.Context, c Config, e *env, out io.Writer) (*env, error) {
	load, err := LoadConfig{URL: c.URL, Schema: fullSchema, Commands: c.Large, Due: c.Rounds * (c.Large / dueShare), Progress: c.Progress}.withDefaults()
	if err != nil {
		return nil, err
	}
	if load.Due > load.Commands/2 {
		return nil, fmt.Errorf("bench: Config.Rounds: there is not enough to purge for more than %d on full tables", dueShare/2)
	}
	d, err := connectDatabase(ctx, c.URL, fullSchema)
	if err != nil {
		return nil, err
	}
	err = d.drop(ctx)
	if err == nil {
		l := &loader{config: load, db: d, past: newPast(load, time.Now())}
		if err = l.run(ctx); err == nil {
			err = l.report(ctx, out)
		}
		full := *e
		full.db, full.past, full.orders = d, l.past, make([]order, len(e.orders))
		if err == nil {
			err = d.ready(ctx)
		}
		if err == nil {
			return &full, nil
		}
	}
	return nil, errors.Join(err, d.close(ctx))
}

// unexpired is the first instance none of whose commands is due.
func (p *past) unexpired() int {
	for n := range p.cohorts() {
		if first, _ := p.cohortOf(n); p.before(first) >= p.due {
			return first
		}
	}
	return p.instances
}

// random is an order of the tenant that all scenarios use, with a number of its
// own that is not due.
func (p *past) random(r *rand.Rand, from int) int {
	for {
		i := from + r.IntN(p.instances-from)
		if !isParcel(i) && p.tenantOf(i/p.cohort) == tenant {
			return i
		}
	}
}

// anyOld are flips of loaded instances, any of them.
func anyOld(e *env, number, _ int) func() transitions.Command {
	r := rand.New(rand.NewPCG(uint64(number), uint64(e.first)))
	n := e.first * 1000 // no key of another round
	return func() transitions.Command {
		i := e.past.random(r, 0)
		o := orderAt(i)
		n++
		return change(flipping, &o, commandKey(number, n))
	}
}

// oldKeysEach is how many old keys a caller has; no round takes as many.
const oldKeysEach = 4096

// oldKeys ask again for any of the loaded flips. Which they are, and of which
// instances, is known before, as it is to who replays on empty tables.
func oldKeys(e *env, number, _ int) func() transitions.Command {
	type old struct {
		instance uuid.UUID
		i, n     int
	}
	r := rand.New(rand.NewPCG(uint64(number), uint64(e.first)))
	from := e.past.unexpired()
	var list [oldKeysEach]old
	for k := range list {
		i := e.past.random(r, from)
		for e.past.length(i) < 2 {
			i = e.past.random(r, from)
		}
		list[k] = old{orderAt(i).id, i, 1 + r.IntN(e.past.length(i)-1)}
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
	return &scenario{name: name, section: theEngine, replays: true, run: closedLoop(func(ctx context.Context, e *env) ([]caller, func(), error) {
		conns, end, err := e.connections(ctx, 1)
		if err != nil {
			return nil, nil, err
		}
		before := e.past.at(0)
		purge := func(ctx context.Context) (int, error) {
			var n int64
			err := conns[0].QueryRow(ctx, e.db.in("SELECT expired + forgotten + abandoned FROM pawl.purge(moment => $1)"), before).Scan(&n)
			if err == nil && n != 0 {
				err = fmt.Errorf("%d were due", n)
			}
			return 1, err
		}
		return []caller{purge}, end, nil
	})}
}

// halved is a scenario of callers that submit at half of the rate that they reach
// just before; one that is compared with another, at the rate of that. With a purge
// it lasts longer, so that it has many batches.
func halved(name, floor string, callers int, with company) *scenario {
	s := &scenario{name: name, section: theEngine, floor: floor}
	if len(with.sinks) > 0 {
		s.section = theRelay
	}
	s.run = func(ctx context.Context, e *env) (_ *sample, err error) {
		eng, taps, end, err := e.engineWith(ctx, with)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
		list := submitters(e, eng, callers)
		peak, err := drive(ctx, list, e.phases)
		if err != nil {
			return nil, err
		}
		if floor == "" || e.half == 0 {
			e.half = peak.rate() / 2
		}
		half := e.half
		warm, err := pace(ctx, list, half, after(e.phases.warm))
		if err != nil {
			return nil, err
		}
		if err := caughtUp(ctx, eng, taps); err != nil {
			return nil, err
		}
		before, begun, timed := purgedBy(eng), time.Now(), e.phases.timed
		if with.purging {
			timed *= purgeTimes
		}
		m, err := pace(ctx, list, half, after(timed))
		if err != nil {
			return nil, err
		}
		if with.purging {
			m.purged = float64(purgedBy(eng)-before) / time.Since(begun).Seconds()
		}
		m.all += peak.all + warm.all
		return m, m.followed(ctx, eng, taps)
	}
	return s
}

// purgedBy is how many commands an engine has ended so far.
func purgedBy(eng *engine.Engine) int64 {
	s := eng.RetentionStats()
	return s.Expired + s.Forgotten
}

// submitters are callers that flip orders of their own.
func submitters(e *env, eng *engine.Engine, callers int) []caller {
	list := make([]caller, callers)
	for i := range list {
		next := flips(e, firstCaller+i, callers)
		list[i] = func(ctx context.Context) (int, error) {
			r, err := eng.Submit(ctx, next())
			return 1, check(r, err, false)
		}
	}
	return list
}
