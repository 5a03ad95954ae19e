package decide

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// FuzzLife plays random lives of a trip, with everything that is in flight, and
// holds every decision and what it leaves against what must be true of all.
func FuzzLife(f *testing.F) {
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(3, 4))
	for range 150 {
		seed := make([]byte, 300)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	w := built(f, tripDefinition())
	f.Fuzz(func(t *testing.T, bytes []byte) {
		p := &player{life: life{t: t, w: w, now: noon}, tape: tape{bytes}, flights: map[transitions.Ref]*transitions.Record{}}
		p.play(p.prepare(p.command("plan", `{}`)))
		for len(p.tape.bytes) > 0 {
			p.turn()
		}
	})
}

// player is a life that follows a tape, with the commands in flight.
type player struct {
	life
	tape    tape
	flights map[transitions.Ref]*transitions.Record
	stands  Standing // as the audit rows say
}

func (p *player) wish() string {
	return fmt.Sprintf(`{"do":%q,"text":%q,"leaves":%q,"n":%d}`,
		pick(&p.tape, "", "", "", "", "emit", "refuse", "panic", "spawn", "goto", "spawn a family"),
		pick(&p.tape, "", "waiting", "panic", "over"),
		p.now.Add(time.Duration(p.tape.below(5)-1)*time.Hour).Format(time.RFC3339Nano), p.tape.below(3))
}

// turn is one thing that happens.
func (p *player) turn() {
	refs := slices.SortedFunc(maps.Keys(p.flights), func(a, b transitions.Ref) int { return strings.Compare(a.Scope+a.Key, b.Scope+b.Key) })
	what := pick(&p.tape, "command", "command", "flight", "flight", "flight", "operation", "time")
	if len(refs) == 0 && what == "flight" {
		what = "command"
	}
	switch what {
	case "time":
		p.now = p.now.Add(time.Duration(p.tape.below(8)) * time.Hour)
	case "command":
		c := p.command(pick(&p.tape, "book", "book", "insure", "pay", "edit", "leave", "end"), p.wish())
		c.Roles = pick(&p.tape, []string{"traveller"}, []string{"traveller"}, nil)
		c.IfVersion = int64(pick(&p.tape, 0, 0, 0, 3))
		if p.tape.below(4) == 0 {
			c.NotBefore = p.now.Add(time.Hour)
		}
		p.play(p.prepare(c))
	case "flight":
		f := FlightOf(p.flights[refs[p.tape.below(len(refs))]], "default")
		f.Attempt++
		if prepared := p.goOn(f); prepared != nil {
			p.play(prepared)
		}
	default:
		p.operate(refs)
	}
}

// goOn is what comes of a command in flight.
func (p *player) goOn(f *InFlight) *Prepared {
	p.t.Helper()
	o := Outcome{Result: []byte(p.wish())}
	if p.tape.below(2) == 0 || f.Phase == transitions.Scheduled {
		o = failure(pick(&p.tape, workflow.FailureError, workflow.FailureCancelled, workflow.FailureAbandoned),
			pick(&p.tape, "no", "panic", "refuse", "\xff"), p.tape.below(2) == 0)
	}
	ready, err := f.Ending(o)
	if f.Phase == transitions.Scheduled && p.tape.below(4) > 0 {
		ready, err = f.Due(p.w)
	}
	if err != nil {
		p.t.Fatalf("%+v: %v", f, err)
	}
	return ready
}

func (p *player) operate(refs []transitions.Ref) {
	o := transitions.Operation{Action: pick(&p.tape, transitions.Pause, transitions.Resume, transitions.Resume, transitions.Retry,
		transitions.Resolve, transitions.Abandon)}
	var stuck *transitions.Record
	if o.Action != transitions.Pause && o.Action != transitions.Resume {
		if len(refs) == 0 {
			return
		}
		r := *p.flights[refs[p.tape.below(len(refs))]]
		r.Stuck = pick(&p.tape, "undecidable", "")
		stuck, o.Target = &r, transitions.CommandRef{Scope: r.Scope, Key: r.Key}
		if o.Action == transitions.Resolve {
			o.Result = []byte(p.wish())
		}
	}
	p.keys++
	ready, err := Operate(transitions.Command{Key: fmt.Sprint("op", p.keys), Workflow: "trip", Actor: "eve", Instance: p.inst.ID}, o)
	if err != nil {
		p.t.Fatal(err)
	}
	ready.Stuck = stuck
	p.play(ready)
}

// play decides, twice, and takes the consequences.
func (p *player) play(ready *Prepared) {
	p.t.Helper()
	inst := p.inst
	var kept *transitions.Instance
	if inst != nil {
		kept = clone(inst)
	}
	canonical := slices.Clone(ready.Canonical)
	d := p.decideAndBear(ready)
	if again := p.decideAndBear(ready); !sameDecision(d, again) {
		p.t.Fatalf("decided %+v and then %+v", d, again)
	}
	if inst != nil && !reflect.DeepEqual(inst, kept) || !slices.Equal(canonical, ready.Canonical) {
		p.t.Fatalf("what was passed in changed to %+v, %s", inst, ready.Canonical)
	}
	p.check(ready, &d)
	if !d.Stored {
		return
	}
	p.follow(ready, &d)
	p.checkFlights()
}

func (p *player) decideAndBear(ready *Prepared) Decision {
	d := Decide(ready, p.w, p.inst, p.now)
	d.startChildren(p.newest, nobody, p.now)
	return d
}

// follow does what a decision says, as the pipeline does.
func (p *player) follow(ready *Prepared, d *Decision) {
	if d.After != nil {
		p.checkStanding(d)
		p.inst = d.After
	}
	own := transitions.Ref{Tenant: "default", Scope: ready.Scope, Key: ready.Key}
	delete(p.flights, own)
	if d.Flight != nil {
		p.flights[own] = ready.Begun(d, p.now)
	}
	for _, scope := range d.Disarmed {
		maps.DeleteFunc(p.flights, func(r transitions.Ref, _ *transitions.Record) bool { return r.Scope == scope })
	}
	for _, c := range d.Commands {
		if c.Instance == p.inst.ID {
			f := c.flight()
			p.flights[f.Ref] = recordOf(f, transitions.Pending, "")
		}
	}
	if x := d.Target; x != nil && x.Flight == nil {
		delete(p.flights, transitions.Ref{Tenant: "default", Scope: x.Scope, Key: x.Key})
	}
}

func (p *player) check(ready *Prepared, d *Decision) {
	p.t.Helper()
	switch {
	case (d.Err == nil) != (d.Status == transitions.Succeeded || d.Status == transitions.Pending):
		p.t.Fatalf("status %q with error %v", d.Status, d.Err)
	case d.Err != nil && d.Err.Code == workflow.Internal:
		cause := fmt.Sprint(d.Err.Cause)
		for _, expected := range []string{"secret of the house", "not among its declared targets", "refused: not with me",
			"more than 100 children"} {
			if strings.Contains(cause, expected) {
				return
			}
		}
		p.t.Fatalf("a defect that nobody asked for: %s", cause)
	case !d.Stored:
		checkRefusal(p.t, *d, nil)
		return
	case (d.Flight != nil) != (d.Code == 202), (d.Flight == nil) != jsontext.Value(d.Body).IsValid():
		p.t.Fatalf("answered %d %s, in flight %+v", d.Code, d.Body, d.Flight)
	}
	for _, c := range d.Commands {
		if _, err := c.flight().Asked(); err != nil || !strings.HasPrefix(c.Scope, transitions.Reserved) || c.Key == "" ||
			c.Flight.RunAt.Before(p.now) {
			p.t.Fatalf("it plans %+v, %v", c, err)
		}
	}
	if d.After != nil && p.inst != nil {
		p.checkChange(d)
	}
}

func (p *player) checkChange(d *Decision) {
	p.t.Helper()
	before, after := p.inst, d.After
	types := map[string]bool{}
	for i, e := range d.Events {
		if e.Ordinal != i || e.Version != after.Version || types[e.Type] {
			p.t.Fatalf("event %d is %+v", i, e)
		}
		types[e.Type] = true
	}
	switch {
	case after.Version != before.Version+1 || d.Entry.Version != after.Version || d.Entry.From != before.State || d.Entry.To != after.State:
		p.t.Fatalf("from %s %d to %s %d, with %+v", before.State, before.Version, after.State, after.Version, d.Entry)
	case !before.Open && (after.Open || after.State != before.State):
		p.t.Fatalf("it left the end for %s", after.State)
	case !types["trip."+d.Entry.Transition] || !jsontext.Value(d.Entry.Payload).IsValid():
		p.t.Fatalf("the entry is %+v with events %v", d.Entry, types)
	case d.Cancelled != nil && (before.Links.InFlight == nil || *d.Cancelled != *before.Links.InFlight || after.State == before.State):
		p.t.Fatalf("it cancels %+v", d.Cancelled)
	}
}

// checkFlights holds what is in flight against the instance.
func (p *player) checkFlights() {
	p.t.Helper()
	ref := p.inst.Links.InFlight
	between := slices.Contains([]workflow.State{booking, "insuring", charging}, p.inst.State)
	if (ref != nil) != between {
		p.t.Fatalf("in %s with %+v in flight", p.inst.State, ref)
	}
	if ref != nil {
		if r := p.flights[transitions.Ref{Tenant: "default", Scope: ref.Scope, Key: ref.Key}]; r == nil || r.Phase != transitions.Working ||
			r.Transition != ref.Transition {
			p.t.Fatalf("nobody takes the instance on: %+v", r)
		}
	}
	for _, timer := range p.w.Timers {
		armed := 0
		for r := range p.flights {
			if r.Scope == timerOf(&p.life, timer.Name) {
				armed++
			}
		}
		if armed > 1 || armed == 1 && !timer.Runs(p.inst.State) {
			p.t.Fatalf("timer %s is armed %d times in %s", timer.Name, armed, p.inst.State)
		}
	}
}

// checkStanding compares the audit row with the instance: the digests can be computed from the rows alone.
func (p *player) checkStanding(d *Decision) {
	p.t.Helper()
	before := p.stands.Digest()
	if p.inst == nil {
		before, p.stands = [32]byte{}, Standing{Definition: d.After.Definition, BusinessKey: d.After.BusinessKey, Parent: d.After.Links.Parent,
			Rest: NoRest}
	}
	p.stands.Apply(&d.Entry, sha256.Sum256(d.Entry.Data))
	p.stands.Open = d.After.Open
	if d.Entry.Before != before || d.Entry.After != p.stands.Digest() || p.stands.Rest != Rest(d.After) ||
		!p.stands.WaitsFor(d.After.Links.InFlight, d.After.ID) {
		p.t.Fatalf("after %s it stands like %+v; its rows say %+v", d.Entry.Transition, StandingOf(d.After), p.stands)
	}
}

// tape turns bytes into choices; when it is over every choice is the first.
type tape struct{ bytes []byte }

func (t *tape) below(n int) int {
	if len(t.bytes) == 0 {
		return 0
	}
	b := t.bytes[0]
	t.bytes = t.bytes[1:]
	return int(b) % n
}

func pick[T any](t *tape, from ...T) T { return from[t.below(len(from))] }

func (t *tape) command() transitions.Command {
	c := transitions.Command{
		Transition: pick(t, "add", "file", "decide", "pay", "drop", "register", "draft"),
		Actor:      pick(t, "ann", "bob", "eve"),
		Roles:      pick(t, nil, []string{"boss"}, []string{"cashier"}, []string{transitions.AnyRole}),
		Key:        fmt.Sprint("k", t.below(4)),
		Options:    transitions.Options{IfVersion: int64(pick(t, 0, 0, 0, 1, 2, 5))},
	}
	switch c.Transition {
	case "file", "register":
		c.Payload = fmt.Appendf(nil, `{"number":%q,"total":%d}`, pick(t, "E-1", "E-1", "E-2"), t.below(3))
		return c
	case "draft":
		return c
	case "add":
		c.Payload = fmt.Appendf(nil, `{"amounts":[%d],"do":%q}`, t.below(9), pick(t, "", "", "emit", "return", "refuse", "panic", "stray"))
	case "decide":
		c.Payload = fmt.Appendf(nil, `{"verdict":%q}`, pick(t, "yes", "no", "wait"))
	}
	c.BusinessKey = pick(t, "E-1", "E-1", "E-1", "E-2")
	return c
}

func sameDecision(a, b Decision) bool {
	if a.Err != nil && b.Err != nil && a.Err.Code == workflow.Internal && b.Err.Code == workflow.Internal {
		return a.Err.Message == b.Err.Message // the causes have stacks
	}
	return reflect.DeepEqual(a, b)
}
