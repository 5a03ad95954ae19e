package fold_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines/replay/fold"
)

// In every state, every transition does what the fold says: it is accepted,
// refused by a rule, or not possible.
func TestEveryTransitionInEveryState(t *testing.T) {
	created := []string{"create_fine 2010-01-10 4000"}
	sent := append(slices.Clip(created), "send_fine 2010-02-01 1500")
	served := append(slices.Clip(sent), "insert_fine_notification 2010-03-01")
	raised := append(slices.Clip(served), "add_penalty 2010-04-30 8200")
	appealed := append(slices.Clip(served), "insert_date_appeal_to_prefecture 2010-05-02")
	forwarded := append(slices.Clip(appealed), "send_appeal_to_prefecture 2010-05-20")
	ordered := append(slices.Clip(forwarded), "receive_result_appeal_from_prefecture 2010-06-01")
	orderServed := append(slices.Clip(ordered), "notify_result_appeal_to_offender 2010-06-15")
	for state, path := range map[fold.State][]string{
		fold.Issued: created, fold.Sent: sent, fold.Notified: served, fold.Penalised: raised, fold.Appealed: appealed,
		fold.Forwarded: forwarded, fold.Ordered: ordered, fold.OrderServed: orderServed,
		fold.BeforeJudge: append(slices.Clip(served), "appeal_to_judge 2010-03-20"),
		fold.Paid:        append(slices.Clip(sent), "payment 2010-02-20 5500"),
		fold.Collection:  append(slices.Clip(raised), "send_for_credit_collection 2011-03-30"),
		fold.Dismissed:   created,
	} {
		for _, transition := range transitionNames {
			c := written(t, append(slices.Clip(path), transition+" 2011-04-01 8200")...)
			last := len(c.Events) - 1
			if state == fold.Dismissed {
				c.Events[last-1].row[dismissalColumn] = "D"
			}
			compareAll(t, strings.NewReader(c.log()))
			p := newPlayer(t)
			for _, e := range c.Events[:last] {
				p.event(t, e)
			}
			require.Equal(t, state, p.state(), "the way to ends")
		}
	}
}

// What is entered stands in the data, each date in its place.
func TestDataKeepsEveryEntry(t *testing.T) {
	c := written(t, "create_fine 2010-01-10 4000", "send_fine 2010-02-01 1500", "insert_fine_notification 2010-03-01",
		"add_penalty 2010-04-30 8200", "payment 2010-05-10 100", "insert_date_appeal_to_prefecture 2010-05-11",
		"send_appeal_to_prefecture 2010-05-20", "receive_result_appeal_from_prefecture 2010-06-01",
		"notify_result_appeal_to_offender 2010-06-15", "appeal_to_judge 2010-07-01", "send_for_credit_collection 2011-03-30")
	c.Events[0].row[pointsColumn] = "2"
	c.Events[2].row[lastSentColumn] = "N"
	p := newPlayer(t)
	for _, e := range c.Events {
		o := p.event(t, e)
		require.Equalf(t, "", o.Reason, "%s is refused", e.row[1])
	}
	const want = `{"article":157,"vehicle_class":"A","points":2,"officer":561,` +
		`"amount_cents":4000,"raised_cents":8200,"expenses_cents":1500,"paid_cents":100,` +
		`"issued_on":"2010-01-10","sent_on":"2010-02-01","notified_on":"2010-03-01","raised_on":"2010-04-30",` +
		`"appealed_on":"2010-05-11","forwarded_on":"2010-05-20","ordered_on":"2010-06-01","order_served_on":"2010-06-15",` +
		`"judge_on":"2010-07-01","collection_on":"2011-03-30","last_on":"2011-03-30","notification_type":"P","last_sent":"N"}`
	assert.Equal(t, want, string(p.fine.Data))
}
