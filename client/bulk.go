package client

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Reply is the result of one of many commands.
type Reply struct {
	Receipt Receipt
	Err     error
}

// Limits of one request, below those of a node.
const (
	itemsOfRequest = 1000
	bytesOfRequest = 8 << 20
)

// itemWait is the minimum delay before commands are resent that a node could not process, because only whole requests have a Retry-After.
const itemWait = time.Second

// SubmitMany submits several commands and returns a reply for each, in order. They are independent commands, as with [Client.Submit], and
// temporary failures are retried. Commands on one instance are executed in order unless one is retried.
func (c *Client) SubmitMany(ctx context.Context, cmds []Command) []Reply {
	replies := make([]Reply, len(cmds))
	b := batch{client: c, replies: replies, items: map[int]jsontext.Value{}}
	for i := range cmds {
		b.add(i, cmds[i])
		if i == len(cmds)-1 || len(b.open) == itemsOfRequest || b.bytes >= bytesOfRequest {
			b.submit(ctx)
		}
	}
	return replies
}

// batch is the content of one request.
type batch struct {
	client  *Client
	replies []Reply                // of all requests
	items   map[int]jsontext.Value // by the index of its reply
	open    []int                  // indexes of commands without a result
	bytes   int
	wait    time.Duration
}

// add adds a command. An invalid one gets its error at once.
func (b *batch) add(place int, cmd Command) {
	if cmd.Key == "" {
		cmd.Key = NewKey()
	}
	b.replies[place].Receipt.Key = cmd.Key
	item, err := cmd.item()
	if err != nil {
		b.replies[place].Err = err
		return
	}
	b.items[place] = item
	b.open, b.bytes, b.wait = append(b.open, place), b.bytes+len(item), max(b.wait, cmd.Wait)
}

// submit sends open commands until all have results or no more can be expected, and empties the batch.
func (b *batch) submit(ctx context.Context) {
	defer func() {
		clear(b.items)
		b.open, b.bytes, b.wait = nil, 0, 0
	}()
	t := trial{client: b.client}
	for len(b.open) > 0 {
		at := b.client.at.Load()
		f := b.send(ctx, at, &t)
		if f != nil && !t.again(ctx, at, f) {
			for _, place := range b.open {
				b.replies[place].setError(ctx, &t, f)
			}
			return
		}
	}
}

// send sends the open commands once. It returns why some are still open.
func (b *batch) send(ctx context.Context, at int64, t *trial) *failed {
	items := make([]jsontext.Value, len(b.open))
	for i, place := range b.open {
		items[i] = b.items[place]
	}
	body, err := json.Marshal(items)
	if err != nil {
		return &failed{err: &workflow.Error{Code: workflow.InvalidRequest, Message: "the payloads are not JSON", Cause: err}}
	}
	var results []wire.BulkResult
	request := &call{method: http.MethodPost, path: "/v1/commands", body: body, wait: b.wait}
	request.read = func(a *answer) error {
		results = nil
		if err := json.Unmarshal(a.body, &results, reading); err != nil || len(results) == len(b.open) {
			return err
		}
		return fmt.Errorf("the node returned %d results for %d commands", len(results), len(b.open))
	}
	if _, f := b.client.attempt(ctx, at, request); f != nil {
		return f
	}
	var newest *failed
	still := b.open[:0:0]
	for i, place := range b.open {
		f := b.replies[place].setResult(&results[i])
		switch {
		case f == nil:
		case f.again:
			t.ambiguous = t.ambiguous || f.ambiguous
			f.elsewhere = f.elsewhere || newest != nil && newest.elsewhere
			newest, still = f, append(still, place)
		default:
			b.replies[place].setError(ctx, t, f)
		}
	}
	b.open = still
	return newest
}

// setError sets the error of a command that was refused or got no result.
func (r *Reply) setError(ctx context.Context, t *trial, f *failed) {
	switch {
	case r.Err != nil && !f.ambiguous && !t.ambiguous:
		return // refused by every attempt
	case r.Err != nil && !f.ambiguous:
		f = &failed{err: workflow.AsError(r.Err)}
	}
	e := t.error(ctx, f)
	if e.Code != f.err.Code || f.ambiguous {
		r.Receipt = Receipt{Key: r.Receipt.Key}
	}
	r.Err = e
}

// setResult sets the result of a command. It returns the reason if the command was refused.
func (r *Reply) setResult(result *wire.BulkResult) *failed {
	key := r.Receipt.Key
	r.Err = nil
	if result.Status < 400 {
		r.Receipt, r.Err = receiptOf(key, result.Status, result.Body)
		r.Receipt.Replayed = result.Replayed
		return nil
	}
	stored := transitions.Receipt{Status: result.Status, Replayed: result.Replayed, Body: slices.Clone(result.Body)}
	r.Receipt = Receipt{Key: key, Receipt: stored}
	f := refused(&answer{status: result.Status, header: http.Header{}, body: result.Body})
	r.Err = f.err
	f.wait, f.elsewhere = itemWait, f.err.Code == workflow.NotOnThisNode // the address works, so other commands stay with it
	return f
}

// item returns a command as part of a bulk request. Errors: those of call.
func (cmd *Command) item() (jsontext.Value, error) {
	payload, err := cmd.payload()
	if err != nil {
		return nil, err
	}
	item := wire.BulkCommand{Workflow: cmd.Workflow, Transition: cmd.Transition, BusinessKey: cmd.On.key, Key: cmd.Key, Actor: cmd.Actor,
		Reason: cmd.Reason, Payload: payload}
	if cmd.On.key != "" {
		item.Workflow = cmd.On.workflow
	}
	if cmd.On.id != uuid.Nil {
		item.Instance = cmd.On.id.String()
	}
	if cmd.Scope != "" {
		item.Scope = &cmd.Scope
	}
	if cmd.IfVersion != 0 {
		item.IfVersion = &cmd.IfVersion
	}
	if at := timeText(cmd.NotBefore); at != "" {
		item.NotBefore = &at
	}
	if at := timeText(cmd.HappenedAt); at != "" {
		item.HappenedAt = &at
	}
	if cmd.ReplayFor != 0 {
		item.ReplayFor = jsontext.Value(seconds(cmd.ReplayFor))
	}
	switch cmd.TombstoneFor {
	case 0:
	case workflow.Forever:
		item.TombstoneFor = jsontext.Value(`"forever"`)
	default:
		item.TombstoneFor = jsontext.Value(seconds(cmd.TombstoneFor))
	}
	text, err := json.Marshal(&item)
	if err != nil {
		return nil, &workflow.Error{Code: workflow.InvalidPayload, Message: "the payload is not JSON", Cause: err}
	}
	return text, nil
}
