package bench

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// asks are commands with an activity, on instances that no other caller touches.
func asks(e *env, number, callers int) func() transitions.Command {
	own := share(e.orders, number-firstCaller, callers)
	n := 0
	return func() transitions.Command {
		c := change(asking, &own[n%len(own)], commandKey(number, n))
		n++
		return c
	}
}

// awaiting is a scenario of callers that submit a command whose activity does
// nothing, and wait for its end. Each makes two transitions, in two commits.
func awaiting(name, floor string, callers int) *scenario {
	s := engineScenario(name, floor, callers, false, func(e *env, eng *engine.Engine, number int) caller {
		next := asks(e, number, callers)
		return func(ctx context.Context) (int, error) {
			c := next()
			r, err := eng.Submit(ctx, c)
			if err == nil && r.InFlight() {
				r, err = eng.Await(ctx, tenant, r.Record.Scope, r.Record.Key)
			}
			return 1, check(r, err, r.Replayed) // Await replays
		}
	})
	s.steps = 2
	return s
}

// awaitingElsewhere is awaiting, but every caller waits for the end on another
// node than the one that works.
func awaitingElsewhere(name string, callers int) *scenario {
	return &scenario{name: name, section: theEngine, steps: 2,
		run: closedLoop(func(ctx context.Context, e *env) ([]caller, func(), error) {
			works, endWorks, err := e.engine(ctx, engine.Config{}, false)
			if err != nil {
				return nil, nil, err
			}
			waits, endWaits, err := e.engine(ctx, engine.Config{InFlight: engine.InFlightConfig{Workers: -1}}, false)
			if err != nil {
				endWorks()
				return nil, nil, err
			}
			list := make([]caller, callers)
			for i := range list {
				next := asks(e, firstCaller+i, callers)
				list[i] = func(ctx context.Context) (int, error) {
					r, err := works.Submit(ctx, next())
					if err == nil {
						r, err = waits.Await(ctx, tenant, r.Record.Scope, r.Record.Key)
					}
					return 1, check(r, err, true)
				}
			}
			return list, func() { endWaits(); endWorks() }, nil
		})}
}

// standing is how many commands are in flight while others are done at once.
const standing = 100_000

// amid is a scenario run beside commands in flight of another tenant: half of
// them wait for their time, a quarter is worked on elsewhere, a quarter is stuck.
func amid(s *scenario) *scenario {
	alone := s.run
	s.run = func(ctx context.Context, e *env) (*sample, error) {
		if err := e.db.stand(ctx, standing); err != nil {
			return nil, fmt.Errorf("put commands in flight: %w", err)
		}
		m, err := alone(ctx, e)
		if err == nil {
			err = e.db.clear(ctx)
		}
		return m, err
	}
	return s
}

// others is the tenant of the commands that stand.
const others = "others"

const standSQL = `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at, updated_at,
	phase, attempt, failures, revision, request, run_at, claimed_by, claimed_at, locked_until, stuck)
SELECT '` + others + `', 'order:' || n, 'k', decode(repeat('00', 32), 'hex'),
	CASE n % 4 WHEN 0 THEN 'processing' WHEN 1 THEN 'failed_retryable' ELSE 'pending' END, 'order', 'ask', gen_random_uuid(), 'a', now(), now(),
	'working', 1, 0, 0, '{"payload":{}}', CASE WHEN n % 4 > 1 THEN now() + n * interval '1 s' + interval '1 h' END,
	'elsewhere', now(), CASE WHEN n % 4 = 0 THEN now() + interval '1 h' END, CASE WHEN n % 4 = 1 THEN 'unknown_outcome' END
FROM generate_series(1, $1::int) n`

// stand puts n commands in flight.
func (d *database) stand(ctx context.Context, n int) error {
	if _, err := d.admin.Exec(ctx, in(standSQL), n); err != nil {
		return err
	}
	_, err := d.admin.Exec(ctx, in("VACUUM (ANALYZE) pawl.command"))
	return err
}

// clear takes them away.
func (d *database) clear(ctx context.Context) error {
	_, err := d.admin.Exec(ctx, in("DELETE FROM pawl.command WHERE tenant = $1"), others)
	return err
}

// askNothing is an activity that does nothing outside.
func askNothing(context.Context, *workflow.Attempt, orderData, changePayload) (askResult, error) {
	return askResult{Answer: "yes"}, nil
}

type askResult struct {
	Answer string `json:"answer"`
}
