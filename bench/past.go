package bench

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
)

// past is what loaded tables say has happened: which instances there are, and
// what was asked of each, when. It is a function of its few numbers, so that any
// of its commands can be asked again without having been remembered.
//
// Instances come in cohorts. One cohort begins, goes through all its transitions
// in turns, and then rests; then comes the next. So the rows lie in the tables as
// they do where orders live for some days: by time, those of one instance apart.
type past struct {
	instances, commands, due int
	tenants                  []string
	end                      time.Time // when it was over: about now

	cohort int // how many instances a cohort has; the last may have fewer
}

// cohortCommands is how many commands a cohort has, about, and so how large the
// loader's transactions are.
const cohortCommands = 10_000

// replayFor is how long the answers of loaded commands are replayed from when
// they were given, the engine's default.
const replayFor = 24 * time.Hour

// unhurried is how long nothing of a past becomes due after it was loaded, beyond
// what is due from the start.
const unhurried = 2 * time.Hour

func newPast(c LoadConfig, now time.Time) *past {
	p := &past{instances: c.Instances, commands: c.Commands, due: c.Due, end: now.UTC().Truncate(time.Microsecond)}
	for i := range c.Tenants {
		name := tenant
		if i > 0 {
			name = fmt.Sprintf("tenant-%03d", i)
		}
		p.tenants = append(p.tenants, name)
	}
	// Of a small past too every tenant has some.
	p.cohort = max(1, min(cohortCommands*p.instances/p.commands, p.instances/(4*c.Tenants)))
	return p
}

func (p *past) cohorts() int { return (p.instances + p.cohort - 1) / p.cohort }

// cohortOf is the instances of the n-th cohort.
func (p *past) cohortOf(n int) (first, end int) {
	return n * p.cohort, min((n+1)*p.cohort, p.instances)
}

// tenantOf is whose the n-th cohort is. Every second one is the first tenant's:
// tenants are not of one size.
func (p *past) tenantOf(cohort int) string {
	if rest := len(p.tenants) - 1; rest > 0 && cohort%2 == 1 {
		return p.tenants[1+cohort/2%rest]
	}
	return p.tenants[0]
}

// before is how many commands the instances before the i-th have.
func (p *past) before(i int) int {
	return i*(p.commands/p.instances) + min(i, p.commands%p.instances)
}

// length is how many commands the i-th instance has: that which creates it, and
// its changes.
func (p *past) length(i int) int { return p.before(i+1) - p.before(i) }

// at is when the n-th of all commands was decided. Those that are due come first,
// and their answers have expired within the last day; the others' expire within
// the next.
func (p *past) at(n int) time.Time {
	last, of, begin := n, p.due, p.end.Add(-2*replayFor)
	length := replayFor
	if n >= p.due {
		last, of, begin = n-p.due, p.commands-p.due, p.end.Add(-replayFor+unhurried)
		length -= unhurried
	}
	return begin.Add(time.Duration(float64(length) * float64(last) / float64(of))).Truncate(time.Microsecond)
}

// pastCaller is a number that no caller has.
const pastCaller = 5000

// isParcel reports what kind of instance the i-th is: every tenth is a parcel.
func isParcel(i int) bool { return i%10 == 9 }

// command is the n-th command of the i-th instance, counted from 0. Every eighth
// instance's changes have a scope that they share with others.
func (p *past) command(i, n int) transitions.Command {
	c := transitions.Command{Tenant: p.tenantOf(i / p.cohort), Key: commandKey(pastCaller+n, i), Actor: actor}
	workflowName, change, key := workflowName, flipping, orderAt(i).key
	if isParcel(i) {
		workflowName, change, key = parcelName, scanning, fmt.Sprintf("p-%010d", i)
	}
	c.Workflow = workflowName
	switch {
	case n == 0 && isParcel(i):
		c.Transition = registering
		c.Payload = fmt.Appendf(nil, `{"customer":"c-%010d","number":"%s"}`, i/30, key)
	case n == 0:
		c.Transition, c.Payload = placing, placeAt(i).Payload
	default:
		c.Transition, c.Payload = change, []byte(changeJSON)
		c.Instance = transitions.InstanceID(c.Tenant, workflowName, key)
		c.Scope = pastScope(i)
	}
	return c
}

// flip is the same of an order of the tenant that all scenarios use, whose id is
// known.
func (p *past) flip(id uuid.UUID, i, n int) transitions.Command {
	c := change(flipping, &order{id: id}, commandKey(pastCaller+n, i))
	c.Scope = pastScope(i)
	return c
}

// pastScope is the scope of what changed an instance; "" is the default.
func pastScope(i int) string {
	if i%8 != 0 {
		return ""
	}
	return fmt.Sprintf("client:%05d", i/1000)
}
