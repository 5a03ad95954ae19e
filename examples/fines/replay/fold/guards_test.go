package fold_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines"
)

// Each rule that can refuse an entry does so with its own words; the entries
// before it are accepted. The fold, which states the rules once more, agrees.
func TestGuardsRefuseInTheClerksWords(t *testing.T) {
	const (
		created  = "create_fine 2010-01-10 4000"
		sent     = "send_fine 2010-02-01 1500"
		served   = "insert_fine_notification 2010-03-01"
		raised   = "add_penalty 2010-04-30 8200"
		appealed = "insert_date_appeal_to_prefecture 2010-05-02"
		upheld   = "receive_result_appeal_from_prefecture 2010-06-01"
		ordered  = "notify_result_appeal_to_offender 2010-06-15"
	)
	tests := []struct {
		reason  string
		entries []string // the last one is refused
	}{
		{"dated before the case's last entry", []string{created, sent, "payment 2010-01-31 100"}},
		{"the notice was sent before", []string{created, sent, appealed, "send_fine 2010-05-03 1500"}},
		{"the notice was never sent", []string{created, appealed, "insert_fine_notification 2010-05-03"}},
		{"the notice was served before", []string{created, sent, served, appealed, "insert_fine_notification 2010-05-03"}},
		{"the notice was never served, so the 60 days have not begun", []string{created, sent, appealed, "add_penalty 2010-07-30 8200"}},
		{"the sum was raised before", []string{created, sent, served, raised, appealed, "add_penalty 2010-05-03 8200"}},
		{"the 60 days to pay are not over", []string{created, sent, served, "add_penalty 2010-04-29 8200"}},
		{"the raised sum is not above the fine", []string{created, sent, served, "add_penalty 2010-04-30 4000"}},
		{"there is no enforceable title: neither raised nor ordered",
			[]string{created, sent, "appeal_to_judge 2010-05-02", "send_for_credit_collection 2011-03-30"}},
		{"nothing is owed", []string{"create_fine 2010-01-10 0", "send_fine 2010-02-01 0", appealed, upheld, ordered,
			"send_for_credit_collection 2011-03-30"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			c := written(t, tt.entries...)
			compareAll(t, strings.NewReader(c.log()))
			p := newPlayer(t)
			last := len(c.Events) - 1
			for _, e := range c.Events[:last] {
				o := p.event(t, e)
				require.Equalf(t, "", o.Reason, "%s is refused", e.row[1])
			}
			before := p.fine
			o := p.event(t, c.Events[last])
			assert.Equal(t, tt.reason, o.Reason, "refused with")
			assert.True(t, p.fine == before, "the refused entry changed the fine")
		})
	}
}

// A payment that is entered up to three days after the term is taken as made
// within it: the reduced sum settles the fine. From the fourth day it does not.
func TestPaymentInThePostSettlesTheReducedSum(t *testing.T) {
	path := []string{"create_fine 2010-01-10 4000", "send_fine 2010-02-01 1500", "insert_fine_notification 2010-03-01",
		"add_penalty 2010-04-30 8200"}
	for _, tt := range []struct {
		pay    string
		state  string
		result string
	}{
		{"payment 2010-05-03 5500", "paid", `{"due_cents":0}`},
		{"payment 2010-05-03 5501", "paid", `{"due_cents":-1}`},
		{"payment 2010-05-03 5499", "penalised", `{"due_cents":1}`},
		{"payment 2010-05-04 5500", "penalised", `{"due_cents":4200}`},
		{"payment 2010-05-04 9700", "paid", `{"due_cents":0}`},
	} {
		c := written(t, append(path, tt.pay)...)
		compareAll(t, strings.NewReader(c.log()))
		p := newPlayer(t)
		var answer string
		for _, e := range c.Events {
			command, err := e.Command()
			require.NoError(t, err)
			d, err := p.command(command)
			require.NoError(t, err)
			answer = string(d.Body)
		}
		assert.Truef(t, string(p.state()) == tt.state && strings.Contains(answer, `"result":`+tt.result),
			"after %s: %s, want %s and %s", tt.pay, answer, tt.state, tt.result)
	}
}

// An annulment ends the case, and the history has the dismissal code.
func TestDismissalEndsTheCase(t *testing.T) {
	for _, path := range [][]string{
		{"create_fine 2010-01-10 4000"},
		{"create_fine 2010-01-10 4000", "insert_date_appeal_to_prefecture 2010-02-01", "send_appeal_to_prefecture 2010-03-01"},
		{"create_fine 2010-01-10 4000", "appeal_to_judge 2010-02-01"},
	} {
		c := written(t, path...)
		c.Events[len(path)-1].row[dismissalColumn] = "#"
		compareAll(t, strings.NewReader(c.log()))
		p := newPlayer(t)
		var reason string
		for _, e := range c.Events {
			command, err := e.Command()
			require.NoError(t, err)
			d, err := p.command(command)
			require.NoError(t, err)
			reason = d.Entry.Reason
		}
		assert.Truef(t, p.fine.State == fines.Dismissed && !p.fine.Open && reason == "annulled with code #",
			"%v: %s, open %v, because %q", path, p.fine.State, p.fine.Open, reason)
	}
}
