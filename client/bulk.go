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

// Reply is what became of one of many commands.
type Reply struct {
	Receipt Receipt
	Err     error
}

// What goes in one request: fewer than a node takes.
const (
	itemsOfRequest = 1000
	bytesOfRequest = 8 << 20
)

// itemWait is the least pause before commands are sent again that a node could not take just now: it says so of requests alone.
const itemWait = time.Second

// SubmitMany submits many commands, and returns a reply for each, in order. Each is a command of its own, as with
// [Client.Submit]: what may pass is tried again. Those on one instance are done in their order, unless one of them is tried again.
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

// batch is what goes in one request.
type batch struct {
	client  *Client
	replies []Reply                // of all requests
	items   map[int]jsontext.Value // by the place of its reply
	open    []int                  // the places of those without an answer
	bytes   int
	wait    time.Duration
}

// add takes a command. One that cannot be sent is answered at once.
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

// submit sends what is open until nothing is, or no more answers are to be had. Then the batch is empty.
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
				b.replies[place].end(ctx, &t, f)
			}
			return
		}
	}
}

// send sends what is open once. What it returns is why some of it still is.
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
		return fmt.Errorf("there are %d results of %d commands", len(results), len(b.open))
	}
	if _, f := b.client.attempt(ctx, at, request); f != nil {
		return f
	}
	var newest *failed
	still := b.open[:0:0]
	for i, place := range b.open {
		f := b.replies[place].take(&results[i])
		switch {
		case f == nil:
		case f.again:
			t.unsure = t.unsure || f.unsure
			f.elsewhere = f.elsewhere || newest != nil && newest.elsewhere
			newest, still = f, append(still, place)
		default:
			b.replies[place].end(ctx, t, f)
		}
	}
	b.open = still
	return newest
}

// end is the end of a command that has no other answer than a refusal, or none at all.
func (r *Reply) end(ctx context.Context, t *trial, f *failed) {
	switch {
	case r.Err != nil && !f.unsure && !t.unsure:
		return // it was refused, and by every attempt
	case r.Err != nil && !f.unsure:
		f = &failed{err: workflow.AsError(r.Err)}
	}
	e := t.error(ctx, f)
	if e.Code != f.err.Code || f.unsure {
		r.Receipt = Receipt{Key: r.Receipt.Key}
	}
	r.Err = e
}

// take reads the result of a command. It returns why it was refused.
func (r *Reply) take(result *wire.BulkResult) *failed {
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
	f.wait, f.elsewhere = itemWait, f.err.Code == workflow.NotOnThisNode // the address has answered: it is kept to for all else
	return f
}

// item is a command as a part of a bulk request. Errors: those of call.
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
