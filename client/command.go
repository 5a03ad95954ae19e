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

// Target is the instance of a call. The zero value is a new instance.
type Target struct {
	id            uuid.UUID
	workflow, key string
}

// NewInstance is the target of commands that create an instance.
var NewInstance Target

// ID returns the target with an instance id.
func ID(id uuid.UUID) Target { return Target{id: id} }

// BusinessKey returns the target with a business key of a workflow.
func BusinessKey(workflow, key string) Target { return Target{workflow: workflow, key: key} }

// path returns the path of the instance.
func (t Target) path() string {
	if t.key != "" {
		return "/v1/workflows/" + segment(t.workflow) + "/keys/" + segment(t.key)
	}
	return "/v1/instances/" + t.id.String()
}

// Command is a command. It is executed once per key, however often it is sent.
type Command struct {
	Workflow   string // optional with a target
	Transition string
	On         Target
	Payload    any // encoded as JSON; []byte and jsontext.Value are JSON already, nil is an empty object

	// Key is the idempotency key. Defaults to a new one for all attempts of a call. To repeat a command later, for example after a restart,
	// create one with [NewKey] and store it.
	Key   string
	Scope string // in which the key is unique; "" is the default

	Reason    string    // for the audit row and the events
	Actor     string    // actor to act as; requires the grant act-as
	IfVersion int64     // refuse unless the instance has this version; 0: any
	NotBefore time.Time // execute it then

	// HappenedAt is the time of an imported command; requires the grant import. The result lists overdue timers.
	HappenedAt time.Time

	// Retention of the key in whole seconds. Defaults to that of the workflow.
	ReplayFor    time.Duration
	TombstoneFor time.Duration // or workflow.Forever

	// Wait is how long the node waits for the completion of a command with activities, in whole seconds. Nodes allow up to 25 seconds by
	// default.
	Wait time.Duration
}

// CommandOf returns a command with a typed payload and a new key.
func CommandOf[P any](name workflow.Name[P], on Target, payload P) Command {
	return Command{Workflow: name.Workflow, Transition: name.Transition, On: on, Payload: payload, Key: NewKey()}
}

// Submit submits a command with a typed payload; see [Client.Submit].
func Submit[P any](ctx context.Context, c *Client, name workflow.Name[P], on Target, payload P) (Receipt, error) {
	return c.Submit(ctx, CommandOf(name, on, payload))
}

// Receipt is the stored result of a command. For a command in flight, Command has its status.
type Receipt struct {
	transitions.Receipt
	Key     string // of the command, even with an error
	Command *CommandStatus
}

// Submit submits a command and retries until it has a result. A refusal is returned as an error with its receipt. A command with activities
// may still be in flight: see [Client.Wait] and [Client.Watch].
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

// SubmitAndWait calls Submit and waits for the completion of a command in flight.
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

// receiptOf returns the receipt of a successful response.
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

// call returns the request for a command. Errors: InvalidRequest, KeyInvalid, ScopeInvalid.
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

// payload validates the target's workflow and returns the payload as JSON.
func (cmd *Command) payload() ([]byte, error) {
	if cmd.On.key != "" && cmd.Workflow != "" && cmd.On.workflow != cmd.Workflow {
		return nil, workflow.Errorf(workflow.InvalidRequest, "the command has workflow %q, but its target is an instance of %q",
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
		return nil, &workflow.Error{Code: workflow.InvalidPayload, Message: "cannot encode the payload", Cause: err}
	}
	return text, nil
}

// headerText returns a text as a header value, quoted (RFC 8941) if it would be ambiguous otherwise. It returns false if the text cannot be
// in a header.
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
