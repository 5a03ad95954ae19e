package client

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Target is the instance that a call is about. The zero value is one that the command creates.
type Target struct {
	id            uuid.UUID
	workflow, key string
}

// NewInstance is for a command that creates an instance.
var NewInstance Target

// ID is an instance by its id.
func ID(id uuid.UUID) Target { return Target{id: id} }

// BusinessKey is an instance by the caller's own number.
func BusinessKey(workflow, key string) Target { return Target{workflow: workflow, key: key} }

// path is the address of the instance.
func (t Target) path() string {
	if t.key != "" {
		return "/v1/workflows/" + segment(t.workflow) + "/keys/" + segment(t.key)
	}
	return "/v1/instances/" + t.id.String()
}

// Command is one intent. Sent again with its key, it is done once.
type Command struct {
	Workflow   string // may be left out with a target
	Transition string
	On         Target
	Payload    any // encoded as JSON; a []byte or a jsontext.Value is JSON already, nil is an empty object

	// Key is the idempotency key. Empty, one is made, for all attempts of one call; who wants to ask again later, such as after a
	// restart, makes one with [NewKey] and keeps it.
	Key   string
	Scope string // within what the key is unique; "" is the default

	Reason    string    // why, for the audit row and the events
	Actor     string    // whom the caller acts as; see act-as
	IfVersion int64     // refuse unless the instance has this version; 0 does not ask
	NotBefore time.Time // decide it then

	// HappenedAt is when it happened, of an import; see the grant import. The answer has the timers that are overdue.
	HappenedAt time.Time

	// How long the key is to be good, in whole seconds; 0 is the workflow's.
	ReplayFor    time.Duration
	TombstoneFor time.Duration // or workflow.Forever

	// Wait is how long a node may keep the caller waiting for the end of a command that takes time; at most 25 s by default of the node, in
	// whole seconds.
	Wait time.Duration
}

// CommandOf is a command with the payload that its definition asks for, and a key of its own.
func CommandOf[P any](name workflow.Name[P], on Target, payload P) Command {
	return Command{Workflow: name.Workflow, Transition: name.Transition, On: on, Payload: payload, Key: NewKey()}
}

// Submit submits a command with the payload that its definition asks for; see [Client.Submit].
func Submit[P any](ctx context.Context, c *Client, name workflow.Name[P], on Target, payload P) (Receipt, error) {
	return c.Submit(ctx, CommandOf(name, on, payload))
}

// Receipt is the durable answer to a command, as the engine gives it; of a command in flight Command has how it stands.
type Receipt struct {
	transitions.Receipt
	Key     string // of the command, also where there is an error
	Command *CommandStatus
}

// Submit submits a command, as often as it takes to get its answer. A refusal is an error too, with its receipt. A command that takes
// time may be in flight when Submit returns: see [Client.Wait] and [Client.Watch].
func (c *Client) Submit(ctx context.Context, cmd Command) (Receipt, error) {
	if cmd.Key == "" {
		cmd.Key = NewKey()
	}
	receipt := Receipt{Key: cmd.Key}
	r, err := cmd.call()
	if err != nil {
		return receipt, err
	}
	r.read = func(a *answer) (err error) {
		receipt, err = receiptOf(cmd.Key, a.status, a.body)
		return err
	}
	a, err := c.do(ctx, r)
	if err != nil {
		receipt = Receipt{Key: cmd.Key}
	}
	if a.status >= http.StatusBadRequest {
		receipt.Status, receipt.Body = a.status, a.body
	}
	receipt.Replayed = a.header.Get("Idempotent-Replayed") == "true"
	return receipt, err
}

// SubmitAndWait is Submit, and waits for the end of a command that takes time.
func (c *Client) SubmitAndWait(ctx context.Context, cmd Command) (Receipt, error) {
	cmd.Wait = longPoll
	r, err := c.Submit(ctx, cmd)
	if err != nil || !r.InFlight() {
		return r, err
	}
	replayed := r.Replayed
	r, err = c.Wait(ctx, r.Command.Scope, r.Command.Key)
	r.Replayed = replayed
	return r, err
}

// receiptOf reads an answer that is no refusal.
func receiptOf(key string, status int, body []byte) (r Receipt, err error) {
	r.Key, r.Status, r.Body = key, status, body
	if status == http.StatusAccepted {
		r.Command = &CommandStatus{}
		err = json.Unmarshal(body, r.Command, reading)
		r.Body, r.Instance, r.Version, r.Position = nil, r.Command.Instance, r.Command.Version, r.Command.Position
		return r, err
	}
	var result transitions.Result
	err = json.Unmarshal(body, &result, reading)
	r.Instance, r.Version, r.Position = result.Instance, result.Version, result.Position
	return r, err
}

// call is the request of a command. Error: InvalidRequest, KeyInvalid, ScopeInvalid.
func (cmd *Command) call() (*call, error) {
	payload, err := cmd.payload()
	if err != nil {
		return nil, err
	}
	r := &call{command: true, method: http.MethodPost, header: http.Header{}, body: payload, wait: cmd.Wait}
	if cmd.On == NewInstance {
		r.path = "/v1/workflows/" + segment(cmd.Workflow)
	} else {
		r.path = cmd.On.path()
	}
	r.path += "/" + segment(cmd.Transition)
	for _, h := range []struct {
		name, value string
		malformed   workflow.Code
	}{
		{"Idempotency-Key", cmd.Key, workflow.KeyInvalid}, {"Idempotency-Scope", cmd.Scope, workflow.ScopeInvalid},
		{"Pawl-Actor", cmd.Actor, workflow.InvalidRequest}, {"If-Match", quotedVersion(cmd.IfVersion), ""},
		{"Pawl-Not-Before", timeText(cmd.NotBefore), ""}, {"Pawl-Happened-At", timeText(cmd.HappenedAt), ""},
		{"Pawl-Replay-For", seconds(cmd.ReplayFor), ""}, {"Pawl-Tombstone-For", seconds(cmd.TombstoneFor), ""},
	} {
		if h.value == "" {
			continue
		}
		text, ok := headerText(h.value, strings.HasPrefix(h.name, "Idempotency-"))
		if !ok {
			return nil, workflow.Errorf(h.malformed, "%q cannot be sent as the header %s", h.value, h.name)
		}
		r.header.Set(h.name, text)
	}
	if cmd.Reason != "" {
		r.header.Set("Pawl-Reason", wire.DisplayString(cmd.Reason))
	}
	return r, nil
}

// payload is the payload as JSON, and whether the target is the workflow's.
func (cmd *Command) payload() ([]byte, error) {
	if cmd.On.key != "" && cmd.Workflow != "" && cmd.On.workflow != cmd.Workflow {
		return nil, workflow.Errorf(workflow.InvalidRequest, "the command is one of workflow %q, and its target an instance of %q",
			cmd.Workflow, cmd.On.workflow)
	}
	switch p := cmd.Payload.(type) {
	case nil:
		return []byte("{}"), nil
	case []byte:
		return p, nil
	case jsontext.Value:
		return p, nil
	}
	text, err := json.Marshal(cmd.Payload, json.Deterministic(true))
	if err != nil {
		return nil, &workflow.Error{Code: workflow.InvalidPayload, Message: "the payload cannot be encoded", Cause: err}
	}
	return text, nil
}

// headerText is a text as the value of a header, in quotes (RFC 8941) where it would be taken for another one without. It reports
// false where a header cannot have it.
func headerText(s string, quotable bool) (string, bool) {
	plain := strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
	if !quotable || s == "" || !strings.Contains(s, ",") && s[0] != '"' && strings.Trim(s, " \t") == s {
		return s, plain
	}
	printable := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`, printable
}

func quotedVersion(v int64) string {
	if v == 0 {
		return ""
	}
	return `"` + strconv.FormatInt(v, 10) + `"`
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func seconds(d time.Duration) string {
	switch d {
	case 0:
		return ""
	case workflow.Forever:
		return "forever"
	}
	return strconv.FormatInt(int64(d/time.Second), 10)
}
