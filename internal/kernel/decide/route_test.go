package decide

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type parcelNotice struct {
	Parcel string `json:"parcel" validate:"required"`
}

// hears makes a workflow whose transitions receive messages of the types that are their names.
func hears(t testing.TB, name string, version int, kinds ...string) *workflow.Workflow {
	t.Helper()
	d := func(*workflow.Call, *parcelNotice, workflow.None) error { return nil }
	mapping := func(kind string) workflow.Mapping[workflow.None] {
		return workflow.JSON(func(m workflow.Message, n parcelNotice) (workflow.Address, workflow.None, error) {
			switch m.Type {
			case kind:
				return workflow.Address{BusinessKey: n.Parcel}, workflow.None{}, nil
			case "ignored by " + kind:
				return workflow.Address{}, workflow.None{}, workflow.ErrIgnored
			case "odd":
				return workflow.Address{}, workflow.None{}, errors.New("odd")
			case "panic":
				panic("secret")
			}
			return workflow.Address{}, workflow.None{}, workflow.ErrNotMine
		})
	}
	parts := []workflow.Part[parcelNotice]{workflow.Start("begin", "open", d), workflow.On("close", workflow.From("open"), "closed", d)}
	for _, kind := range kinds {
		parts = append(parts, workflow.On(kind, workflow.From("open"), workflow.Stay, d).Receive("post", mapping(kind)))
	}
	w, err := workflow.Define(name, version, parts...).Final("closed").Build()
	require.NoError(t, err)
	return w
}

func post(kind, body string) transitions.Message {
	return transitions.Message{Tenant: "default", Consumer: "post", ID: "m", Type: kind, Body: []byte(body)}
}

// The order is that of the workflows' names and of the declaration, and the newest version is asked.
func TestTheFirstTakerTakesTheMessage(t *testing.T) {
	newest := []*workflow.Workflow{hears(t, "a", 2, "lost", "found"), hears(t, "b", 1, "found", "weighed")}
	old := hears(t, "a", 1, "burnt")
	routes := MessageRoutes(newest, func(name string) []*workflow.Workflow {
		if name == "a" {
			return []*workflow.Workflow{old}
		}
		return nil
	})
	require.Truef(t, len(routes) == 1 && len(routes["post"]) == 4, "routes are %v", routes)
	for kind, want := range map[string]string{"found": "a found", "weighed": "b weighed"} {
		m := post(kind, `{"parcel":"p-1"}`)
		p, err := PrepareMessage(m, routes["post"], uuid.New)
		require.NoError(t, err)
		got := p.Workflow + " " + p.Transition
		assert.Truef(t, got == want && p.Scope == "inbox:post" && p.Key == "m" && p.Actor == "inbox:post" &&
			slices.Equal(p.Roles, []string{transitions.AnyRole}) && p.Fingerprint == m.Hash() &&
			p.Instance == transitions.InstanceID("default", p.Workflow, "p-1"), "%s: %+v", kind, p.Command)
	}
	for _, tt := range []struct {
		kind, body string
		want       error
		code       workflow.Code
	}{
		{"burnt", `{"parcel":"p"}`, nil, workflow.MessageNotTaken}, // of an older version only
		{"ignored by lost", `{"parcel":"p"}`, workflow.ErrIgnored, ""},
		{"ignored by weighed", `{"parcel":"p"}`, workflow.ErrIgnored, ""},
		{"odd", `{"parcel":"p"}`, nil, workflow.InvalidPayload},
		{"panic", `{"parcel":"p"}`, nil, workflow.Internal},
		{"found", `{}`, nil, workflow.InvalidPayload},
		{"found", `{"parcel":"` + strings.Repeat("x", 300) + `"}`, nil, workflow.InvalidRequest},
		{"\x00", `{"parcel":"p"}`, nil, workflow.InvalidRequest},
	} {
		_, err := PrepareMessage(post(tt.kind, tt.body), routes["post"], uuid.New)
		assert.Truef(t, (tt.want == nil || errors.Is(err, tt.want)) && (tt.want != nil || workflow.CodeOf(err) == tt.code),
			"%q %.40s: %v", tt.kind, tt.body, err)
		if e, ok := errors.AsType[*workflow.Error](err); ok {
			assert.NotContains(t, e.Message, "secret", tt.kind)
		}
	}
	_, err := PrepareMessage(post("found", `{"parcel":"p"}`), nil, uuid.New)
	assert.Equalf(t, workflow.MessageNotTaken, workflow.CodeOf(err), "without a route: %v", err)
}
