package workflow

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type letter struct {
	Order string `json:"order" validate:"required"`
	Note  string `json:"note"`
}

type stamp struct {
	Note string `json:"note"`
}

func stamped(m Message, l letter) (Address, stamp, error) {
	switch m.Type {
	case "other":
		return Address{}, stamp{}, ErrNotMine
	case "ignored":
		return Address{}, stamp{}, ErrIgnored
	case "odd":
		return Address{}, stamp{}, errors.New("there is no such order")
	case "refused":
		return Address{}, stamp{}, Refuse("not today")
	case "invalid":
		return Address{}, stamp{}, invalid("/order", "is odd")
	}
	return Address{BusinessKey: l.Order}, stamp{Note: l.Note + m.ID + m.Tenant + m.Consumer}, nil
}

// reception is that of a transition which receives by the mapping.
func reception[P any](m Mapping[P]) *Reception {
	return On("stamp", From("open"), Stay, func(*Call, *calm, P) error { return nil }).Receive("post", m).step().Receives[0]
}

func TestAMessageBecomesAnAddressAndAPayload(t *testing.T) {
	r := reception(JSON(stamped))
	a, payload, err := r.Take(Message{Tenant: "t", Consumer: "post", ID: "m", Body: []byte(` {"order":"o-1","note":"n","more":{"x":1}}`)})
	assert.Truef(t, err == nil && a == (Address{BusinessKey: "o-1"}) && string(payload) == `{"note":"nmtpost"}`,
		"got %v %s %v", a, payload, err)
	id := uuid.New()
	byID := reception(JSON(func(_ Message, list []uuid.UUID) (Address, None, error) {
		return Address{Instance: list[0]}, None{}, nil
	}))
	a, payload, err = byID.Take(Message{Body: []byte(`["` + id.String() + `"]`)})
	assert.Truef(t, err == nil && a.Instance == id && string(payload) == "{}", "got %v %s %v", a, payload, err)
}

func TestAMessageThatIsNotTaken(t *testing.T) {
	r := reception(JSON(stamped))
	for _, tt := range []struct {
		kind, body string
		notMine    bool
		ignored    bool
		code       Code
		text       string
	}{
		{"other", `{"order":"o"}`, true, false, "", ""},
		{"ignored", `{"order":"o"}`, false, true, "", ""},
		{"", `{"order":`, true, false, InvalidPayload, ""},
		{"", `{"order":7}`, true, false, InvalidPayload, ""},
		{"", `{"order":"o","order":"p"}`, true, false, InvalidPayload, ""},
		{"", `{"note":"o"}`, true, false, InvalidPayload, ""},
		{"odd", `{"order":"o"}`, false, false, InvalidPayload, "the message makes no sense: there is no such order"},
		{"refused", `{"order":"o"}`, false, false, InvalidPayload, "the message makes no sense: not today"},
		{"invalid", `{"order":"o"}`, false, false, InvalidPayload, "the payload is not valid"},
	} {
		_, _, err := r.Take(Message{Type: tt.kind, Body: []byte(tt.body)})
		e, _ := errors.AsType[*Error](err)
		assert.Truef(t, err != nil && errors.Is(err, ErrNotMine) == tt.notMine && errors.Is(err, ErrIgnored) == tt.ignored &&
			(e != nil) == (tt.code != "") && (e == nil || e.Code == tt.code && (tt.text == "" || e.Message == tt.text)),
			"%s %s: %v", tt.kind, tt.body, err)
	}
	endless := reception(JSON(func(Message, None) (Address, map[string]any, error) {
		return Address{}, map[string]any{"f": func() {}}, nil
	}))
	_, _, err := endless.Take(Message{Body: []byte("{}")})
	assert.Equalf(t, Internal, CodeOf(err), "a payload that cannot be encoded: %v", err)
}

func TestReceive_UnreadableFields(t *testing.T) {
	type notice struct {
		Order  string `json:"order" validate:"required"`
		Amount int    `json:"amount"`
		At     string `json:"at"`
	}
	r := reception(JSON(func(Message, notice) (Address, letter, error) { return Address{}, letter{}, ErrIgnored }))
	_, _, err := r.Take(Message{Body: []byte(`{"order":"","amount":"much","at":7,"theirs":true}`)})
	e, ok := errors.AsType[*Error](err)
	require.Truef(t, ok && errors.Is(err, ErrNotMine), "got %v", err)
	var pointers []string
	for _, f := range e.Fields {
		pointers = append(pointers, f.Pointer)
	}
	want := []string{"/amount", "/at", "/order"}
	assert.Truef(t, slices.Equal(pointers, want), "it names %v, want %v", pointers, want)
}

func TestBuildFindsMistakesInWhatIsReceived(t *testing.T) {
	type wrongRule struct {
		A string `json:"a" validate:"no-such-rule"`
	}
	_, err := Define("w", 1,
		Start("begin", "open", quiet[stamp]).
			Receive("", JSON(stamped)).
			Receive(strings.Repeat("x", 250), JSON(stamped)).
			Receive("a\x00", JSON(stamped)).
			Receive("nil", JSON[letter, stamp](nil)).
			Receive("none", Mapping[stamp]{}).
			Receive("rule", JSON(func(Message, wrongRule) (Address, stamp, error) { return Address{}, stamp{}, nil })),
	).Final("open").Build()
	m, ok := errors.AsType[*Mistakes](err)
	require.Truef(t, ok && len(m.List) == 6, "got %v", err)
	for i, want := range []string{"without a name", "longer than 249 bytes", "cannot be stored", `"nil" without a function`,
		`"none" without a function`, "no-such-rule"} {
		assert.Contains(t, m.List[i], want, "does not say")
	}
}

// What is received is described, and no part of the hash: it may change under one
// version.
func TestReceive_DescribedNotHashed(t *testing.T) {
	build := func(receive bool) *Workflow {
		begin := Start("begin", "open", quiet[stamp])
		send := sound("send", "sending", "closed")
		if receive {
			begin.Receive("post", JSON(stamped)).Receive("post", JSON(stamped)).Receive("bank", JSON(stamped))
			send.Receive("post", JSON(func(Message, letter) (Address, None, error) { return Address{}, None{}, nil }))
		}
		w, err := Define("w", 1, begin, send).Final("closed").Build()
		require.NoError(t, err)
		return w
	}
	with, without := build(true), build(false)
	assert.Equal(t, without.Hash, with.Hash, "the hash changes")
	d := with.Describe()
	if !slices.Equal(d.Transitions[0].Receives, []string{"post", "bank"}) || !slices.Equal(d.Transitions[1].Receives, []string{"post"}) {
		t.Errorf("described are %v and %v", d.Transitions[0].Receives, d.Transitions[1].Receives)
	}
}
