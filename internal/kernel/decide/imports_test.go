package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// past makes a command an import.
func past(c transitions.Command, ago time.Duration) transitions.Command {
	c.HappenedAt = noon.Add(-ago)
	return c
}

func TestAnImportIsDecidedAsOfThenAndDoneNow(t *testing.T) {
	t.Parallel()
	l := &life{t: t, w: built(t, tripDefinition()), now: noon}
	d := l.must(l.decide(past(l.command("plan", `{}`), 2*time.Hour)))
	if e := d.Entry; !e.At.Equal(noon) || e.Cause != "import 2026-03-01T10:00:00.123456Z" || !d.After.CreatedAt.Equal(noon.Add(-2*time.Hour)) ||
		!d.Events[0].At.Equal(noon) {
		t.Errorf("the entry is %+v", e)
	}
	cause, by := transitions.CauseOf(d.Entry.Cause, d.Entry.Scope, d.Entry.Key)
	if cause != transitions.CausedByImport || by != "2026-03-01T10:00:00.123456Z" || d.Events[0].Cause != cause || d.Events[0].CausedBy != by {
		t.Errorf("it is caused by %s %s, and its event by %s %s", cause, by, d.Events[0].Cause, d.Events[0].CausedBy)
	}
	if got, want := plans(d), []string{"scheduled nag at 01 13:00", "scheduled end at 02 10:00"}; !slices.Equal(got, want) {
		t.Errorf("the timers are %q", got)
	}
	const overdue = `,"overdue":[{"timer":"nagging","transition":"nag","due":"2026-03-01T11:00:00.123456Z",` +
		`"fires":"2026-03-01T13:00:00.123456Z"}]`
	assert.Truef(t, strings.Contains(string(d.Body), overdue) && !d.Plain, "the answer is %s", d.Body)
	// A timer that runs on was armed before, and what is not overdue is not told.
	d = l.must(l.decide(past(l.command("edit", `{}`), time.Hour)))
	assert.Truef(t, len(d.Commands) == 0 && len(d.Disarmed) == 0 && !strings.Contains(string(d.Body), "overdue") && d.Plain,
		"got %+v %s", d.Commands, d.Body)
	d = l.must(l.decide(past(l.command("end", `{}`), time.Hour)))
	assert.Truef(t, !d.After.Open && d.Entry.Cause == "import 2026-03-01T11:00:00.123456Z", "got %+v", d.Entry)
}

func TestTheCodeOfAnImportSeesWhenItHappened(t *testing.T) {
	t.Parallel()
	var seen []time.Time
	look := func(c *workflow.Call, _ *ticket, _ workflow.None) error {
		seen = append(seen, c.Now())
		return nil
	}
	w := built(t, workflow.Define("clock", 1, workflow.Start("begin", "open", look),
		workflow.On("end", workflow.From("open"), "closed", look).
			Guard("now", func(c *workflow.Call, _ ticket) error { seen = append(seen, c.Now()); return nil })).Final("closed"))
	var inst *transitions.Instance
	for _, name := range []string{"begin", "end"} {
		c := transitions.Command{Workflow: "clock", Transition: name, Key: name,
			Options: transitions.Options{HappenedAt: noon.Add(-time.Hour).In(time.FixedZone("", 3600))}}
		if inst != nil {
			c.Instance = inst.ID
		}
		p, err := Prepare(c, w, fixedID)
		require.NoError(t, err)
		d := Decide(p, w, inst, noon)
		require.NotNilf(t, d.After, "got %+v", d)
		inst = d.After
	}
	if then := noon.Add(-time.Hour); len(seen) != 3 || slices.ContainsFunc(seen, func(at time.Time) bool { return !at.Equal(then) }) {
		t.Errorf("the code saw %v", seen)
	}
}

func TestImport_Invalid(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for name, c := range map[string]transitions.Command{
		"what has not happened yet":  past(l.command("edit", `{}`), -time.Second),
		"what does something":        past(l.command("book", `{}`), time.Hour),
		"what begins something else": past(l.command("edit", `{"do":"spawn"}`), time.Hour),
	} {
		p := l.prepare(c)
		d := DecideAll(p, l.w, l.inst, func(string, int) *workflow.Workflow { return l.w }, nobody, noon)
		wantCode(t, d.Err, workflow.InvalidRequest)
		assert.Truef(t, !d.Stored && d.After == nil, "%s: %+v", name, d)
	}
	later := past(l.command("edit", `{}`), time.Hour)
	later.NotBefore = noon.Add(time.Hour)
	_, err := Prepare(later, l.w, fixedID)
	wantCode(t, err, workflow.InvalidRequest)
	farther := past(l.command("edit", `{}`), 0)
	farther.HappenedAt = time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err = Prepare(farther, l.w, fixedID)
	wantCode(t, err, workflow.InvalidRequest)
}

// The same key with another time is another command.
func TestWhenItHappenedIsPartOfWhatTheKeyStandsFor(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	c := l.command("edit", `{}`)
	seen := map[[32]byte]bool{}
	for _, ago := range []time.Duration{time.Hour, 2 * time.Hour} {
		seen[l.prepare(past(c, ago)).Fingerprint] = true
	}
	seen[l.prepare(c).Fingerprint] = true
	exact := past(c, time.Hour)
	exact.HappenedAt = exact.HappenedAt.Add(time.Nanosecond).In(time.FixedZone("", 7200))
	assert.Truef(t, seen[l.prepare(exact).Fingerprint] && len(seen) == 3, "%d fingerprints", len(seen))
}
