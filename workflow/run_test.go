package workflow

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type ledger struct {
	Total int            `json:"total"`
	Lines []int          `json:"lines,omitempty"`
	By    map[string]int `json:"by,omitempty"`
}

type entry struct {
	Lines []int          `json:"lines"`
	By    map[string]int `json:"by"`
	To    State          `json:"to"`
	Emit  []string       `json:"emit"`
	Fail  string         `json:"fail"`
}

var someFacts = Facts{
	Now: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), Tenant: "t-1", Actor: "ann",
	Instance: uuid.MustParse("01936b0e-0000-7000-8000-000000000001"), Version: 3, State: "open", Reason: "she called",
}

// ledgerStep is a transition from "open" whose action does as it is told.
func ledgerStep(t testing.TB, action func(*Call, *ledger, entry) error, guards ...func(*Call, ledger) error) *Step {
	t.Helper()
	on := On("book", From("open"), "open", action).Or("closed", Stay)
	for _, g := range guards {
		on.Guard("the books are open", g)
	}
	w, err := Define("ledger", 1,
		Start("begin", "open", func(*Call, *ledger, None) error { return nil }), on,
	).Final("closed").Build()
	require.NoError(t, err)
	return w.Leaving("book", "open")
}

func decoded(t testing.TB, s *Step, payload string) Payload {
	t.Helper()
	p, err := s.Decode([]byte(payload))
	require.NoError(t, err)
	return p
}

func book(c *Call, d *ledger, e entry) error {
	if e.Fail != "" {
		d.Total = -1
		return Refuse("%s", e.Fail)
	}
	for _, l := range e.Lines {
		d.Total += l
	}
	if d.By == nil {
		d.By = map[string]int{}
	}
	for name, n := range e.By {
		d.By[name] += n
	}
	d.Lines = append(d.Lines, e.Lines...)
	if e.To != "" {
		c.Goto(e.To)
	}
	for _, event := range e.Emit {
		c.Emit(event, map[string]any{"total": d.Total, "by": d.By})
	}
	c.Return(map[string]int{"z": 1, "a": d.Total})
	c.Because("booked by " + c.Actor())
	return nil
}

func TestRunDecides(t *testing.T) {
	s := ledgerStep(t, book)
	out, err := s.Run(someFacts, []byte(`{"total":1}`), decoded(t, s,
		`{"lines":[2,3],"by":{"b":1,"a":2},"to":"closed","emit":["booked","closed"]}`))
	require.NoError(t, err)
	want := Outcome{
		To: "closed", Reason: "booked by ann",
		Data:   []byte(`{"total":6,"lines":[2,3],"by":{"a":2,"b":1}}`),
		Result: []byte(`{"a":6,"z":1}`),
		Events: []Emitted{
			{"booked", []byte(`{"by":{"a":2,"b":1},"total":6}`)},
			{"closed", []byte(`{"by":{"a":2,"b":1},"total":6}`)},
		},
	}
	assert.Equalf(t, want, out, "got\n%s", out.Data)
}

func TestRunGoesToTheFirstTargetUnlessTold(t *testing.T) {
	s := ledgerStep(t, book)
	for to, want := range map[string]State{"": "open", "open": "open", "closed": "closed", string(Stay): "open"} {
		out, err := s.Run(someFacts, nil, decoded(t, s, `{"to":"`+to+`"}`))
		assert.Truef(t, err == nil && out.To == want, "Goto(%q): %q, %v", to, out.To, err)
	}
}

func TestActionKnowsItsFacts(t *testing.T) {
	var got Facts
	s := ledgerStep(t, func(c *Call, _ *ledger, _ entry) error {
		got = Facts{c.Now(), c.Tenant(), c.Actor(), c.Instance(), c.Version(), c.State(), "", c.Reason(), 0}
		return nil
	})
	_, err := s.Run(someFacts, nil, decoded(t, s, `{}`))
	require.NoError(t, err)
	assert.Truef(t, got == someFacts, "got %+v", got)
}

// A defect of the workflow's code is not a refusal: it must not be stored with
// the key and replayed.
func TestMisuseOfTheCallIsADefect(t *testing.T) {
	cases := map[string]struct {
		action func(*Call, *ledger, entry) error
		cause  string
	}{
		"an undeclared target": {
			func(c *Call, _ *ledger, _ entry) error { c.Goto("lost"); return nil },
			`transition "book" goes to "lost", which is not among its declared targets`},
		"one event twice": {
			func(c *Call, _ *ledger, _ entry) error { c.Emit("e", 1); c.Emit("e", 2); return nil },
			`transition "book" emits event "e" twice`},
		"an event without a type": {
			func(c *Call, _ *ledger, _ entry) error { c.Emit("", 1); return nil },
			`emits an event of type "", which is empty`},
		"an event with a long type": {
			func(c *Call, _ *ledger, _ entry) error { c.Emit(strings.Repeat("e", 256), 1); return nil },
			`which is longer than 255 bytes`},
		"an event whose type is not UTF-8": {
			func(c *Call, _ *ledger, _ entry) error { c.Emit("e\xff", 1); return nil },
			`emits an event of type "e\xff", which is not valid UTF-8`},
		"an event with a NUL in its type": {
			func(c *Call, _ *ledger, _ entry) error { c.Emit("e\x00", 1); return nil },
			`which contains U+0000`},
		"an event with a line break in its type": {
			func(c *Call, _ *ledger, _ entry) error { c.Emit("book.e\n", 1); return nil },
			`transition "book" emits an event of type "book.e\n", which contains U+000A`},
		"an event with a control character of the second kind in its type": {
			func(c *Call, _ *ledger, _ entry) error { c.Emit("e\u0085", 1); return nil },
			`which contains U+0085`},
		"an event with what is no character in its type": {
			func(c *Call, _ *ledger, _ entry) error { c.Emit("e\ufdd0", 1); return nil },
			`which contains U+FDD0`},
		"an event that is not JSON": {
			func(c *Call, _ *ledger, _ entry) error { c.Emit("e", make(chan int)); return nil },
			`transition "book": encode event "e"`},
		"a result that is not JSON": {
			func(c *Call, _ *ledger, _ entry) error { c.Return(make(chan int)); return nil },
			`transition "book": encode result`},
		"the first of several, even beside a refusal": {
			func(c *Call, _ *ledger, _ entry) error { c.Goto("lost"); c.Goto("gone"); return Refuse("no") },
			`goes to "lost"`},
		"data that is not UTF-8": {
			func(_ *Call, d *ledger, _ entry) error { d.By = map[string]int{"\xff": 1}; return nil },
			`UTF-8`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := ledgerStep(t, c.action)
			out, err := s.Run(someFacts, nil, decoded(t, s, `{}`))
			e, ok := errors.AsType[*Error](err)
			assert.Truef(t, ok && e.Code == Internal && e.Cause != nil && strings.Contains(e.Cause.Error(), c.cause),
				"got %v, want %q in it", err, c.cause)
			assert.Falsef(t, ok && strings.Contains(e.Message, "book"), "the message shows the inside: %s", e.Message)
			assert.Equal(t, Outcome{}, out, "something was decided")
		})
	}
}

func TestDataThatABuildCannotReadIsForAnother(t *testing.T) {
	s := ledgerStep(t, book, func(*Call, ledger) error { return nil })
	p := decoded(t, s, `{}`)
	for _, data := range []string{`{"total":"x"}`, `[`, `{"total":1`} {
		_, err := s.Run(someFacts, []byte(data), p)
		assert.Equalf(t, NotOnThisNode, CodeOf(err), "Run on %s: %v", data, err)
		refusals := s.Check(someFacts, []byte(data))
		assert.Truef(t, len(refusals) == 1 && CodeOf(refusals[0]) == NotOnThisNode, "Check on %s: %v", data, refusals)
		_, _, err = s.Typed([]byte(data), p)
		assert.Equalf(t, NotOnThisNode, CodeOf(err), "Typed on %s: %v", data, err)
	}
	_, err := s.Run(someFacts, []byte(`{"total":1,"later":true}`), p)
	assert.NoError(t, err, "data with a member of another build")
}

func TestGuardsSpeakTogether(t *testing.T) {
	ran := false
	s := ledgerStep(t, func(*Call, *ledger, entry) error { ran = true; return nil },
		func(_ *Call, d ledger) error {
			if d.Total > 0 {
				return Refuse("the total is %d", d.Total)
			}
			return nil
		},
		func(*Call, ledger) error { return nil },
		func(*Call, ledger) error { return errors.New("closed on Sundays") },
		func(*Call, ledger) error { return errors.New("") },
	)
	data := []byte(`{"total":7}`)
	refusals := s.Check(someFacts, data)
	var texts []string
	for _, r := range refusals {
		assert.Equal(t, GuardRefused, CodeOf(r), "code")
		texts = append(texts, r.(*Error).Message)
	}
	want := []string{"the total is 7", "closed on Sundays", "the books are open"}
	assert.Equal(t, want, texts, "Check")
	_, err := s.Run(someFacts, data, decoded(t, s, `{}`))
	e, ok := errors.AsType[*Error](err)
	assert.Truef(t, ok && e.Code == GuardRefused && e.Message == strings.Join(want, "; "), "Run: %v", err)
	assert.False(t, ran, "the action ran all the same")
}

// An action cannot choose to be retried, nor take an engine's code.
func TestRefusalsAreFinal(t *testing.T) {
	cases := map[string]struct {
		err     error
		code    Code
		message string
	}{
		"Refuse":                {Refuse("only %d left", 2), GuardRefused, "only 2 left"},
		"any error":             {errors.New("sold out"), GuardRefused, "sold out"},
		"a defect":              {Errorf(Internal, "broken"), Internal, "broken"},
		"an engine's code":      {Errorf(Locked, "try again"), GuardRefused, "instance_locked: try again"},
		"a replayable code":     {Errorf(VersionConflict, "moved"), GuardRefused, "version_conflict: moved"},
		"a refusal, wrapped":    {errors.Join(errors.New("first"), Refuse("second")), GuardRefused, "second"},
		"an error without text": {errors.New(""), GuardRefused, "the workflow refuses it"},
		"an unknown own code":   {Errorf("mine", "m"), GuardRefused, "mine: m"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			byAction := ledgerStep(t, func(*Call, *ledger, entry) error { return c.err })
			byGuard := ledgerStep(t, book, func(*Call, ledger) error { return c.err })
			if c.err.Error() == "" {
				byGuard = byAction // a guard has a name to show instead
			}
			for _, s := range []*Step{byAction, byGuard} {
				_, err := s.Run(someFacts, nil, decoded(t, s, `{}`))
				e, ok := errors.AsType[*Error](err)
				assert.Truef(t, ok && e.Code == c.code && e.Message == c.message, "got %v", err)
			}
		})
	}
}

func TestPanicsPassThrough(t *testing.T) {
	s := ledgerStep(t, func(*Call, *ledger, entry) error { panic("mine") })
	p := decoded(t, s, `{}`)
	defer func() {
		v := recover()
		assert.Truef(t, v == "mine", "recovered %v", v)
	}()
	_, err := s.Run(someFacts, nil, p)
	t.Errorf("Run returned %v", err)
}

// Deciding again decides the same, and leaves what it was given as it was, even
// when the action changes its payload in place.
func TestRunIsPure(t *testing.T) {
	s := ledgerStep(t, func(c *Call, d *ledger, e entry) error {
		for i := range e.Lines {
			e.Lines[i] *= 2
		}
		e.By["seen"]++
		d.Lines, d.By = e.Lines, e.By
		return book(c, d, e)
	}, func(_ *Call, d ledger) error {
		if len(d.Lines) > 0 {
			d.Lines[0] = 99
		}
		return nil
	})
	data := []byte(`{"total":1,"lines":[5]}`)
	raw := []byte(`{"lines":[1,2],"by":{"x":1},"emit":["e"]}`)
	p := decoded(t, s, string(raw))
	first, err := s.Run(someFacts, data, p)
	require.NoError(t, err)
	for range 3 {
		again, err := s.Run(someFacts, data, p)
		require.Truef(t, err == nil && reflect.DeepEqual(again, first), "%+v then %+v, %v", first, again, err)
	}
	assert.Equalf(t, `{"total":1,"lines":[5]}`, string(data), "the data became %s", data)
	_, err = s.Run(someFacts, data, decoded(t, s, `{"by":{},"fail":"no"}`))
	assert.Equalf(t, GuardRefused, CodeOf(err), "got %v", err)
	assert.Equalf(t, `{"total":1,"lines":[5]}`, string(data), "the refusal left %s", data)
}

// The decoder's input may be a buffer that is used again.
func TestPayloadDoesNotDependOnItsBytes(t *testing.T) {
	s := ledgerStep(t, book)
	raw := []byte(`{"lines":[1,2],"by":{"x":1}}`)
	p, err := s.Decode(raw)
	require.NoError(t, err)
	for i := range raw {
		raw[i] = 'x'
	}
	out, err := s.Run(someFacts, nil, p)
	assert.Truef(t, err == nil && string(out.Data) == `{"total":3,"lines":[1,2],"by":{"x":1}}`, "got %s, %v", out.Data, err)
}

func TestTypedGivesTheGoValues(t *testing.T) {
	s := ledgerStep(t, book)
	d, p, err := s.Typed([]byte(`{"total":4}`), decoded(t, s, `{"lines":[1]}`))
	require.NoError(t, err)
	if d, ok := d.(ledger); !ok || d.Total != 4 {
		t.Errorf("data %#v", d)
	}
	if p, ok := p.(entry); !ok || len(p.Lines) != 1 {
		t.Errorf("payload %#v", p)
	}
}

// Fuzzing the decision: whatever the payload and the data, Run answers twice
// the same and returns an *Error or an outcome of the declared targets.
func FuzzRun(f *testing.F) {
	s := ledgerStep(f, book)
	f.Add(`{"lines":[1],"to":"closed","emit":["a"]}`, `{"total":1}`)
	f.Add(`{"emit":["a","a"]}`, ``)
	f.Add(`{"to":"nowhere"}`, `{}`)
	f.Add(`{"fail":"no"}`, `{"by":{"a":1}}`)
	f.Add(`{"by":{"a":9223372036854775807}}`, `{"by":{"a":1},"lines":null}`)
	f.Fuzz(func(t *testing.T, payload, data string) {
		p, err := s.Decode([]byte(payload))
		if err != nil {
			return
		}
		first, err := s.Run(someFacts, []byte(data), p)
		again, errAgain := s.Run(someFacts, []byte(data), p)
		require.Truef(t, reflect.DeepEqual(first, again) && CodeOf(err) == CodeOf(errAgain),
			"%+v %v, then %+v %v", first, err, again, errAgain)
		_, ok := errors.AsType[*Error](err)
		require.Falsef(t, err != nil && !ok, "%T", err)
		require.Falsef(t, err == nil && first.To != "open" && first.To != "closed", "it went to %q", first.To)
	})
}
