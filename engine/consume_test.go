package engine_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The bank sends messages about loans.

type notice struct {
	Loan   string `json:"loan" validate:"required"`
	Amount int    `json:"amount"`
}

func onLoan(n notice) workflow.Address { return workflow.Address{BusinessKey: n.Loan} }

// bankLoans is the loan of these tests, which listens to the bank.
func bankLoans() *workflow.Definition[loan] {
	return workflow.Define("loan", 1,
		workflow.Start("apply", "open", apply).BusinessKey(func(p application) string { return p.Number }).
			Receive("bank", workflow.JSON(func(m workflow.Message, n notice) (workflow.Address, application, error) {
				if m.Type != "applied" {
					return workflow.Address{}, application{}, workflow.ErrNotMine
				}
				return workflow.Address{}, application{Number: n.Loan, Amount: n.Amount}, nil
			})),
		workflow.Start("walk-in", "open", apply).
			Receive("bank", workflow.JSON(func(m workflow.Message, n notice) (workflow.Address, application, error) {
				if m.Type != "walked in" {
					return workflow.Address{}, application{}, workflow.ErrNotMine
				}
				return workflow.Address{}, application{Number: n.Loan, Amount: n.Amount}, nil
			})),
		workflow.On("pay", workflow.From("open"), workflow.Stay, pay).Or("settled").Receive("bank", workflow.JSON(paid)),
		workflow.Do("collect", workflow.From("open"), "collecting", "settled",
			func(context.Context, *workflow.Attempt, loan, workflow.None) (int, error) { return 0, nil }, nothing[loan, int]).
			OrElse("open", nothing[loan, workflow.Failure]).
			Receive("bank", workflow.JSON(func(m workflow.Message, n notice) (workflow.Address, workflow.None, error) {
				if m.Type != "collect" {
					return workflow.Address{}, workflow.None{}, workflow.ErrNotMine
				}
				return onLoan(n), workflow.None{}, nil
			})),
	).Final("settled")
}

func paid(m workflow.Message, n notice) (workflow.Address, payment, error) {
	switch m.Type {
	case "paid":
		return onLoan(n), payment{Amount: n.Amount}, nil
	case "wrong":
		return workflow.Address{}, payment{}, errors.New("no such currency")
	case "broken":
		panic("secret of the mapping")
	case "greeting":
		return workflow.Address{}, payment{}, workflow.ErrIgnored
	}
	return workflow.Address{}, payment{}, workflow.ErrNotMine
}

func withBank(c *engine.Config) { c.Workflows = []workflow.Source{bankLoans()} }

func fromBank(id, kind, body string) transitions.Message {
	return transitions.Message{Consumer: "bank", ID: id, Type: kind, Body: []byte(body)}
}

// consumed consumes a message that must be done.
func consumed(t testing.TB, e *engine.Engine, m transitions.Message) transitions.Receipt {
	t.Helper()
	r, err := e.Consume(t.Context(), m)
	if err == nil {
		err = r.Err()
	}
	require.NoErrorf(t, err, "message %s", m.ID)
	return r
}

// dead lists the dead messages as "id status code deliveries".
func dead(t testing.TB, e *engine.Engine, f inspect.DeadMessageFilter) string {
	t.Helper()
	list, more, err := e.Admin().DeadMessages(t.Context(), f)
	require.Truef(t, err == nil && !more, "more %v, %v", more, err)
	var lines []string
	for _, m := range list {
		lines = append(lines, fmt.Sprintf("%s %s %s %d", m.ID, m.Status, m.Code, m.Deliveries))
	}
	return strings.Join(lines, "\n")
}

func wantDead(t testing.TB, e *engine.Engine, want ...string) {
	t.Helper()
	assert.Equal(t, strings.Join(want, "\n"), dead(t, e, inspect.DeadMessageFilter{}), "on the list:\n \nwant")
}

func TestAMessageBecomesTheCommandThatItIsMappedTo(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), withBank)
	if r := consumed(t, e, fromBank("m-1", "applied", `{"loan":"l-1","amount":100,"sent by":"the bank"}`)); r.Status != 201 || r.Replayed {
		t.Errorf("got %+v", r)
	}
	if r := consumed(t, e, fromBank("m-2", "paid", `{"loan":"l-1","amount":30}`)); r.Status != 200 || r.Version != 2 || r.Position == 0 {
		t.Errorf("got %+v", r)
	}
	if r := consumed(t, e, fromBank("m-3", "walked in", `{"loan":"-","amount":1}`)); r.Status != 201 || r.Instance == loanID("-") {
		t.Errorf("got %+v", r)
	}
	if r := consumed(t, e, fromBank("m-4", "greeting", `{"loan":"hello"}`)); r.Status != 200 || string(r.Body) != `{"ignored":true}` {
		t.Errorf("got %+v", r)
	}
	r := consumed(t, e, fromBank("m-5", "collect", `{"loan":"l-1"}`))
	require.Truef(t, r.InFlight(), "got %+v", r)
	if r, err := e.Await(t.Context(), transitions.Ref{Scope: "inbox:bank", Key: "m-5"}); err != nil || r.Err() != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	again := consumed(t, e, fromBank("m-5", "collect", `{"loan":"l-1"}`))
	assert.Truef(t, again.Status == 200 && again.Replayed, "got %+v", again)
	history, err := e.Read().History(t.Context(), "", loanID("l-1"), 0, 10)
	require.Truef(t, err == nil && len(history) == 4, "%d entries, %v", len(history), err)
	for i, key := range []string{"m-1", "m-2", "m-5", "m-5"} {
		h := history[i]
		assert.Truef(t, h.Actor == "inbox:bank" && h.Scope == "inbox:bank" && h.Key == key, "entry %d: %s %s %s", i, h.Actor, h.Scope, h.Key)
	}
	wantDead(t, e)
}

func TestConsume_ConcurrentDuplicates(t *testing.T) {
	t.Parallel()
	pool := database(t)
	nodes := []*engine.Engine{newEngine(t, pool, withBank), newEngine(t, pool, withBank)}
	consumed(t, nodes[0], fromBank("m-0", "applied", `{"loan":"l-1","amount":100}`))
	for _, m := range []transitions.Message{
		fromBank("m-1", "paid", `{"loan":"l-1","amount":1}`),
		fromBank("m-2", "applied", `{"loan":"l-2"}`),
		fromBank("m-3", "walked in", `{"loan":"-"}`),
	} {
		before := rowCounts(t, pool)
		answers := make([]transitions.Receipt, 10)
		var work sync.WaitGroup
		for i := range answers {
			work.Go(func() {
				var err error
				answers[i], err = nodes[i%2].Consume(t.Context(), m)
				assert.NoError(t, err, m.ID)
			})
		}
		work.Wait()
		first := 0
		for _, r := range answers {
			assert.Truef(t, r.Status == answers[0].Status && string(r.Body) == string(answers[0].Body),
				"%s: answers differ: %+v, %+v", m.ID, r, answers[0])
			if !r.Replayed {
				first++
			}
		}
		assert.Equalf(t, 1, first, "%s answers are not replays", m.ID)
		more := map[string]int{"pawl.command": 1, "pawl.audit": 1, "pawl.outbox": 1, "head": 1}
		if m.Type != "paid" {
			more["pawl.instance"] = 1
		}
		wantMore(t, pool, before, more)
	}
	wantDead(t, nodes[0])
}

func TestConsume_ReusedMessageID(t *testing.T) {
	t.Parallel()
	pool, e := started(t, withBank)
	consumed(t, e, fromBank("m-1", "applied", `{"loan":"l-1"}`))
	before := rowCounts(t, pool)
	for _, body := range []string{`{"loan":"l-2"}`, `no JSON`} { // whether or not it can be read
		wantCode(t, errOf(e.Consume(t.Context(), fromBank("m-1", "applied", body))), workflow.MessageReused)
	}
	wantMore(t, pool, before, nil)
	wantDead(t, e, "m-1 waiting message_reused 1", "m-1 waiting message_reused 1")
	assert.True(t, consumed(t, e, fromBank("m-1", "applied", `{"loan":"l-1"}`)).Replayed, "the first message is not replayed")
	wantDead(t, e, "m-1 waiting message_reused 1", "m-1 waiting message_reused 1")
}

func TestDeadMessages_List(t *testing.T) {
	t.Parallel()
	pool, e := started(t, withBank)
	consumed(t, e, fromBank("m-0", "applied", `{"loan":"l-1","amount":5}`))
	before := rowCounts(t, pool)
	for _, tt := range []struct {
		name, kind, body string
		code             workflow.Code
		failure          string
	}{
		{"no JSON", "paid", `{"loan"`, workflow.InvalidPayload, "the message cannot be read; /loan: is not valid JSON: it ends too early"},
		{"empty", "paid", ``, workflow.InvalidPayload, "the message cannot be read; is not valid JSON"},
		{"wrong type", "paid", `{"loan":7}`, workflow.InvalidPayload, "/loan: must be a string"},
		{"a broken rule", "paid", `{"amount":7}`, workflow.InvalidPayload, "/loan"},
		{"nobody's", "unheard of", `{"loan":"l-1"}`, workflow.MessageNotTaken, `consumer "bank", type "unheard of"`},
		{"no sense", "wrong", `{"loan":"l-1"}`, workflow.InvalidPayload, "the message makes no sense: no such currency"},
		{"a panic", "broken", `{"loan":"l-1"}`, workflow.Internal, "the workflow's code failed"},
		{"a payload that is refused", "paid", `{"loan":"l-1","amount":0}`, workflow.InvalidPayload, "/amount"},
		{"an empty business key", "applied", `{"loan":"\u0000"}`, workflow.InvalidPayload, "contains a NUL"},
		{"no instance", "paid", `{"loan":"l-9","amount":1}`, workflow.InstanceNotFound, `no instance with the business key "l-9"`},
	} {
		m := fromBank(tt.name, tt.kind, tt.body)
		for range 2 {
			_, err := e.Consume(t.Context(), m)
			assert.Equalf(t, tt.code, workflow.CodeOf(err), "%s: %v", tt.name, err)
		}
		d, err := e.Admin().DeadMessage(t.Context(), m.WithDefaults().Ref())
		assert.Truef(t, err == nil && d.Code == tt.code && strings.Contains(d.Failure, tt.failure) && !strings.Contains(d.Failure,
			"secret") && d.Deliveries == 2 && string(d.Body) == tt.body && d.Type == tt.kind && d.Size == len(tt.body) &&
			d.Status == inspect.MessageWaiting, "%s: %+v, %v", tt.name, d, err)
	}
	wantMore(t, pool, before, nil)
}

// If deliveries are counted the message waits for the instance. If not, it is listed at once, and removed from the list when it is done.
func TestAMessageWaitsForItsInstance(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), withBank, func(c *engine.Config) { c.MaxDeliveries = 3 })
	counted, uncounted := fromBank("counted", "paid", `{"loan":"l-1","amount":1}`), fromBank("uncounted", "paid", `{"loan":"l-1","amount":1}`)
	_, err := e.Consume(t.Context(), uncounted)
	wantCode(t, err, workflow.InstanceNotFound)
	for counted.Delivery = 1; counted.Delivery <= 2; counted.Delivery++ {
		wantCode(t, errOf(e.Consume(t.Context(), counted)), workflow.InstanceNotFound)
	}
	wantDead(t, e, "uncounted waiting instance_not_found 1")
	wantCode(t, errOf(e.Consume(t.Context(), counted)), workflow.InstanceNotFound)
	wantDead(t, e, "uncounted waiting instance_not_found 1", "counted waiting instance_not_found 3")
	consumed(t, e, fromBank("m-0", "applied", `{"loan":"l-1","amount":5}`))
	counted.Delivery++
	consumed(t, e, counted)
	consumed(t, e, uncounted)
	wantDead(t, e)
}

// A pause may be longer than a sender that counts deliveries itself retries. Its message is listed meanwhile, and removed from the list
// when it is done by any node.
func TestAMessageToAPausedWorkflowIsNotLost(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), withBank)
	require.NoError(t, e.Admin().PauseWorkflow(t.Context(), "", "loan", "ann", ""))
	again, never := fromBank("again", "applied", `{"loan":"l-1","amount":5}`), fromBank("never", "applied", `{"loan":"l-2","amount":5}`)
	counted := fromBank("counted", "applied", `{"loan":"l-3","amount":5}`)
	counted.Delivery = 1
	for _, m := range []transitions.Message{again, never, counted, again} {
		wantCode(t, errOf(e.Consume(t.Context(), m)), workflow.Paused)
	}
	wantDead(t, e, "again waiting paused 2", "never waiting paused 1")
	wantCode(t, errOf(e.Admin().RetryMessage(t.Context(), never.WithDefaults().Ref(), "ann", "too early")), workflow.Paused)
	require.NoError(t, e.Admin().ResumeWorkflow(t.Context(), "", "loan"))
	consumed(t, e, again)
	wantDead(t, e, "never waiting paused 2")
	r, err := e.Admin().RetryMessage(t.Context(), never.WithDefaults().Ref(), "ann", "its sender gave up")
	assert.Truef(t, err == nil && !r.Refused(), "got %+v, %v", r, err)
	wantDead(t, e)
}

func TestSQLAndTheEngineConsumeAMessageOnce(t *testing.T) {
	t.Parallel()
	pool, e := started(t, withBank)
	one := fromBank("m-1", "applied", `{"loan":"l-1","amount":5}`)
	consumed(t, e, one)
	in := func(id string, body []byte) (first bool, err error) {
		sum := sha256.Sum256(body)
		err = pool.QueryRow(t.Context(), "SELECT pawl.consume('bank', $1, $2)", id, sum[:]).Scan(&first)
		return first, err
	}
	first, err := in("m-1", one.Body)
	assert.Truef(t, err == nil && !first, "SQL consumes it again: %v, %v", first, err)
	_, err = in("m-1", []byte("another"))
	assert.Truef(t, err != nil && strings.Contains(err.Error(), "P4050"), "got %v", err)
	for _, kind := range []string{"applied", "unheard of"} {
		m := fromBank("SQL "+kind, kind, `{"loan":"l-2"}`)
		first, err := in(m.ID, m.Body)
		assert.Truef(t, err == nil && first, "got %v, %v", first, err)
		r := consumed(t, e, m)
		assert.Truef(t, r.Status == 200 && r.Replayed && string(r.Body) == "{}", "got %+v", r)
		m.Body = []byte(`{"loan":"l-3"}`)
		wantCode(t, errOf(e.Consume(t.Context(), m)), workflow.MessageReused)
	}
	held := fromBank("held", "applied", `{"loan":"l-4"}`)
	sum := held.Hash()
	exec(t, pool, "SELECT pawl.claim('inbox:bank', 'held', $1)", sum[:])
	wantCode(t, errOf(e.Consume(t.Context(), held)), workflow.InProgress)
}

func TestMessageScopesAreReserved(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	c := applied("l-1", 1)
	c.Scope = "inbox:bank"
	wantCode(t, errOf(e.Submit(t.Context(), c)), workflow.ScopeInvalid)
	c.Scope, c.Actor = "", "inbox:bank"
	wantCode(t, errOf(e.Submit(t.Context(), c)), workflow.InvalidRequest)
}

// A sender does not know the retention period of the workflow.
func TestAMessageIsRememberedForThirtyDaysAtLeast(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	brief := workflow.Horizons{Replay: 2 * time.Second, Tombstone: 4 * time.Second, MaxTombstone: time.Minute}
	e := newEngine(t, pool, clock.set, func(c *engine.Config) { c.Workflows = []workflow.Source{bankLoans().Keep(brief)} })
	const month = 30 * 24 * time.Hour
	submit(t, e, applied("l-2", 1))
	consumed(t, e, fromBank("m-1", "applied", `{"loan":"l-1","amount":100}`))
	m, flying := fromBank("m-2", "paid", `{"loan":"l-1","amount":30}`), fromBank("m-3", "collect", `{"loan":"l-1"}`)
	consumed(t, e, m)
	consumed(t, e, flying)
	r, err := e.Await(t.Context(), transitions.Ref{Scope: transitions.InboxScope("bank"), Key: "m-3"})
	require.Truef(t, err == nil && !r.Refused(), "collect: %+v, %v", r, err)
	for _, wait := range []time.Duration{2 * time.Second, time.Minute, month - time.Minute - 2*time.Second} {
		clock.skip(wait)
		retain(t, pool, clock.Now())
		for _, m := range []transitions.Message{m, flying} {
			wantCode(t, errOf(e.Consume(t.Context(), m)), workflow.KeyExpired)
		}
	}
	assert.Equal(t, "m-1 m-2 m-3", query[string](t, pool, "SELECT string_agg(key, ' ' ORDER BY key) FROM pawl.command"),
		"remembered; a caller's key should be as good as the workflow says")
	assert.Equal(t, 1, query[int](t, pool, "SELECT count(*) FROM pawl.audit WHERE transition = 'pay'"), "paid times")
	clock.skip(2 * time.Second)
	retain(t, pool, clock.Now())
	wantCode(t, errOf(e.Read().Command(t.Context(), transitions.Ref{Scope: transitions.InboxScope("bank"), Key: "m-2"})),
		workflow.CommandNotFound)
}
