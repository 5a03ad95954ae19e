package stream

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/internal/parse"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
)

// message is what a WebSocket client sends.
type message struct {
	op       string
	id       string
	after    Start     // of subscribe
	selected selection // of subscribe
	scope    string    // of watch
	key      string    // of watch

	credential string // of authenticate
}

// Ask is what a client asks for.
type Ask struct {
	Operation string
	Filter    transitions.EventFilter // of subscribe
	Command   transitions.Ref         // of watch
}

func (m *message) ask(tenant string) Ask {
	return Ask{m.op, m.selected.EventFilter, transitions.Ref{Tenant: tenant, Scope: m.scope, Key: m.key}}
}

// The operations of a client.
const (
	Subscribe    = wire.Subscribe
	Watch        = wire.Watch
	Unsubscribe  = wire.Unsubscribe
	Authenticate = wire.Authenticate
)

// Operations are all that a client can ask.
var Operations = []string{Subscribe, Watch, Unsubscribe, Authenticate}

const (
	maxSubscriptionID = 64       // bytes
	maxChoices        = 64       // types, states or attributes in a filter
	maxCredential     = 16 << 10 // bytes
)

// parseMessage reads a message. Its error says what is wrong with it, briefly
// enough for a close frame.
func parseMessage(text []byte) (message, error) {
	var in wire.Message
	if err := json.Unmarshal(text, &in, json.RejectUnknownMembers(true)); err != nil {
		problem := parse.JSON(err)
		if problem.Pointer == "" {
			return message{}, fmt.Errorf("the message %s", problem.Message)
		}
		return message{}, fmt.Errorf("%s: %s", problem.Pointer, problem.Message)
	}
	m := message{op: in.Op, id: in.ID}
	if m.id == "" || len(m.id) > maxSubscriptionID || strings.IndexByte(m.id, 0) >= 0 {
		return m, fmt.Errorf("/id: must be 1 to %d bytes without NUL", maxSubscriptionID)
	}
	ofLog, ofCommand := in.After != nil || !empty(&in.Filter), in.Scope != nil || in.Key != nil
	if in.Credential != nil && m.op != Authenticate {
		return m, fmt.Errorf("/credential: only %s has one", Authenticate)
	}
	switch m.op {
	case Subscribe:
		if ofCommand {
			return m, fmt.Errorf("subscribe has no scope and no key")
		}
		return m, m.subscribe(&in)
	case Watch:
		if ofLog {
			return m, fmt.Errorf("watch has no position and no filter")
		}
		return m, m.watch(&in)
	case Unsubscribe:
		if ofLog || ofCommand {
			return m, fmt.Errorf("unsubscribe has only an id")
		}
		return m, nil
	case Authenticate:
		if ofLog || ofCommand {
			return m, fmt.Errorf("authenticate has only an id and a credential")
		}
		return m, m.authenticate(&in)
	default:
		return m, fmt.Errorf("/op: must be one of %s", strings.Join(Operations, ", "))
	}
}

func (m *message) authenticate(in *wire.Message) error {
	if in.Credential == nil || *in.Credential == "" || len(*in.Credential) > maxCredential ||
		strings.ContainsAny(*in.Credential, " \r\n\x00") {
		return fmt.Errorf("/credential: must be 1 to %d bytes without blanks", maxCredential)
	}
	m.credential = *in.Credential
	return nil
}

func (m *message) watch(in *wire.Message) error {
	for _, part := range []struct {
		name  string
		text  *string
		limit int
		into  *string
	}{{"scope", in.Scope, transitions.MaxScope, &m.scope}, {"key", in.Key, transitions.MaxKey, &m.key}} {
		if part.text == nil || *part.text == "" || transitions.TextProblem(*part.text, part.limit) != "" {
			return fmt.Errorf("/%s: must be 1 to %d bytes without NUL", part.name, part.limit)
		}
		*part.into = *part.text
	}
	return nil
}

func (m *message) subscribe(in *wire.Message) error {
	text := string(in.After)
	if in.After.Kind() == '"' {
		unquoted, err := jsontext.AppendUnquote(nil, in.After)
		if err != nil {
			return fmt.Errorf("/after: %w", err)
		}
		if text = string(unquoted); text != "start" && text != "now" {
			text = "" // a position is a number, not a string
		}
	}
	var ok bool
	if m.after, ok = ParseStart(text); !ok {
		return fmt.Errorf(`/after: must be a position, "start" or "now"`)
	}
	f := &in.Filter
	f.Types, f.States = given(f.Types), given(f.States)
	if slices.Contains(f.Types, "") || slices.Contains(f.States, "") {
		return fmt.Errorf("/filter: an empty type or state is among others")
	}
	m.selected = selection{transitions.EventFilter{Workflow: f.Workflow, BusinessKey: f.BusinessKey, Attributes: f.Attributes,
		Types: f.Types, States: f.States}}
	if f.Instance != "" {
		var err error
		if m.selected.Instance, err = parse.ID(f.Instance); err != nil {
			return fmt.Errorf("/filter/instance: must be a UUID")
		}
	}
	if len(f.Types) > maxChoices || len(f.States) > maxChoices || len(f.Attributes) > maxChoices {
		return fmt.Errorf("/filter: more than %d types, states or attributes", maxChoices)
	}
	return nil
}

// given returns the values of a filter without empty ones.
func given[T ~string](list []T) []T {
	if len(list) == 1 && list[0] == "" {
		return nil
	}
	return list
}

func empty(f *wire.Filter) bool {
	return f.Workflow == "" && f.Instance == "" && f.BusinessKey == "" && f.Attributes == nil && f.Types == nil && f.States == nil
}
