package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// tracking are parcels that hear of themselves from the post.
func tracking() *workflow.Definition[move] {
	type scan struct {
		Parcel string `json:"parcel" validate:"required"`
		Text   string `json:"text"`
	}
	of := func(kind string) func(workflow.Message, scan) (workflow.Address, note, error) {
		return func(m workflow.Message, s scan) (workflow.Address, note, error) {
			switch {
			case m.Type == "parcel.noise":
				return workflow.Address{}, note{}, workflow.ErrIgnored
			case m.Type != kind:
				return workflow.Address{}, note{}, workflow.ErrNotMine
			case s.Text == "broken":
				panic("secret of the mapping")
			case s.Text == "nonsense":
				return workflow.Address{}, note{}, errors.New("no such place")
			case kind == "parcel.sent":
				return workflow.Address{}, note{Text: s.Parcel}, nil
			}
			return workflow.Address{BusinessKey: s.Parcel}, note{Text: s.Text}, nil
		}
	}
	return workflow.Define("parcel", 1,
		workflow.Start("send", "travelling", write("sent")).BusinessKey(func(n note) string { return n.Text }).
			Receive("post", workflow.JSON(of("parcel.sent"))),
		workflow.On("scan", workflow.From("travelling"), workflow.Stay, write("scanned")).Receive("post", workflow.JSON(of("parcel.scanned"))),
		workflow.Do("hand-over", workflow.From("travelling"), "handing-over", "delivered",
			func(_ context.Context, _ *workflow.Attempt, _ move, n note) (note, error) { return n, nil }, write("handed over")).
			OrElse("travelling", noteFailure).Receive("post", workflow.JSON(of("parcel.arrived"))),
	).Final("delivered")
}

func fromPost(id, kind, parcel, text string) transitions.Message {
	return transitions.Message{Consumer: "post", ID: id, Body: fmt.Appendf(nil, `{"type":"parcel.%s","parcel":%q,"text":%q}`, kind, parcel,
		text)}
}

// A run says of every message what an engine says, and has the same ones on its list.
func TestMessagesHaveTheFateThatTheyHaveOnAnEngine(t *testing.T) {
	t.Parallel()
	s := pawltest.Run(t, tracking())
	e := pawltest.Engine(t, tracking())
	counted := func(m transitions.Message, delivery int) transitions.Message { m.Delivery = delivery; return m }
	large := fromPost("large", "sent", "P-2", "")
	large.Body = append(large.Body, strings.Repeat(" ", transitions.MaxMessage)...)
	for i, m := range []transitions.Message{
		fromPost("early", "scanned", "P-1", "too early"), fromPost("early", "scanned", "P-1", "too early"),
		counted(fromPost("counted", "scanned", "P-1", "too early"), 1), counted(fromPost("counted", "scanned", "P-1", "too early"), 20),
		fromPost("m-1", "sent", "P-1", ""), fromPost("m-1", "sent", "P-1", ""), fromPost("m-1", "sent", "P-9", ""),
		fromPost("early", "scanned", "P-1", "too early"), // it is off the list now
		fromPost("m-2", "scanned", "P-1", "refuse"), fromPost("m-2", "scanned", "P-1", "refuse"),
		fromPost("m-3", "scanned", "P-1", "panic"), fromPost("m-4", "scanned", "P-1", "broken"), fromPost("m-5", "scanned", "P-1", "nonsense"),
		fromPost("m-6", "scanned", "", "unreadable"), fromPost("m-7", "noise", "P-1", ""), fromPost("m-8", "unknown", "P-1", ""),
		{Consumer: "post", ID: "m-9", Body: []byte("no JSON")}, {Consumer: "nobody", ID: "m-1", Body: []byte("{}")},
		{Consumer: "post"}, large,
		{Consumer: "post", ID: "m-1", Body: []byte(`{"type":"parcel.unknown","parcel":"P-1"}`)},
	} {
		got, gotErr := s.Consume(m)
		want, wantErr := e.Consume(t.Context(), m)
		a, b := shortly(got, gotErr), shortly(want, wantErr)
		assert.Truef(t, a == b, "message %d, %s: the run answers %s\nthe engine %s", i, m.ID, a, b)
	}
	list, _, err := e.Admin().DeadMessages(t.Context(), inspect.DeadMessageFilter{})
	require.NoError(t, err)
	a, b := deathOf(s.DeadMessages()), deathOf(list)
	assert.Truef(t, a == b && len(list) >= 8, "dead in the run:\n%son the engine:\n%s", a, b)
}

func deathOf(list []inspect.DeadMessage) string {
	var lines []string
	for _, d := range list {
		lines = append(lines, fmt.Sprintln(d.Consumer, d.ID, d.Type, d.About, d.Size, d.Status, d.Code, d.Failure, d.Deliveries))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
