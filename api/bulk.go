package api

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/internal/parse"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// bulk submits many commands: POST /v1/commands, a JSON array or NDJSON. The
// answer has an item for each, in order, also for those that are malformed.
// Only where the items cannot be told apart is the whole request refused, and
// then nothing of it was submitted.
func (a *API) bulk(w http.ResponseWriter, r *request) error {
	body, err := a.body(w, r)
	if err != nil {
		return err
	}
	split := splitArray
	if _, err := contentType(r.Request, mediaNDJSON); err == nil {
		split = splitLines
	}
	b := &batch{may: func(cmd *transitions.Command) error {
		if err := a.may(r.Context(), &r.caller, r.route.Grant, aboutCommand(cmd)); err != nil {
			return err
		}
		return a.by(r, cmd)
	}}
	items, err := split(body, a.cfg.Limits.BulkItems)
	if err != nil {
		return err
	}
	if err := a.admit(w, r.tenant(), actorKey(&r.caller), len(items)); err != nil {
		return err
	}
	for _, item := range items { // who may send one can take a look at its instance
		b.add(item)
	}
	if r.boolean("dry_run") {
		w.Header().Set(headerDryRun, "true")
		a.submitParts(r, b, func(ctx context.Context, commands []transitions.Command) []transitions.Reply {
			replies := make([]transitions.Reply, len(commands))
			for i, cmd := range commands {
				replies[i].Receipt, replies[i].Err = a.engine.DryRun(ctx, cmd)
			}
			return replies
		})
	} else {
		a.submitParts(r, b, a.engine.SubmitMany)
		a.settle(w, r, b.receipts()...)
	}
	b.filter(&r.caller)
	send(w, http.StatusOK, mediaJSON, a.renderBulk(r.Context(), b.replies))
	return nil
}

// batch is a bulk request: the rights of its sender, a reply for each item, and the commands of the items that could be read, with the
// index of their replies.
type batch struct {
	may      func(*transitions.Command) error
	replies  []transitions.Reply
	commands []transitions.Command
	places   []int
}

// add takes an item. One that is malformed, or that the caller may not send, is answered at once.
func (b *batch) add(item []byte) {
	cmd, err := commandOf(item)
	if err == nil {
		err = b.may(&cmd)
	}
	b.replies = append(b.replies, transitions.Reply{Err: err})
	if err != nil {
		return
	}
	b.commands = append(b.commands, cmd)
	b.places = append(b.places, len(b.replies)-1)
}

// firstPart is how many commands of a bulk request are submitted before the size of their answers is known.
const firstPart = 16

// nextPart is how many of the commands are submitted next, after the first ones had answers of so many bytes: as many as will have
// [transitions.PageBytes].
func nextPart(all, submitted, bytes int) int {
	n := firstPart
	if submitted > 0 {
		n = max(1, transitions.PageBytes*submitted/max(bytes, 1))
	}
	return min(n, all-submitted)
}

// submitParts submits the commands in parts, and holds memory for the answers of each part: stored answers may be far larger than the
// requests. If a part finds no memory, its commands and all later ones are answered with the refusal. The commands of that part may have
// taken effect; the same keys return their answers later.
func (a *API) submitParts(r *request, b *batch, submit func(context.Context, []transitions.Command) []transitions.Reply) {
	var refused error
	size := 0
	for begin := 0; begin < len(b.commands); {
		part := b.commands[begin : begin+nextPart(len(b.commands), begin, size)]
		var replies []transitions.Reply
		if refused == nil {
			replies = submit(r.Context(), part)
			bytes := 0
			for i := range replies {
				bytes += len(replies[i].Receipt.Body)
			}
			refused = r.holder.Take(r.Context(), 2*int64(bytes)) // and once more in the answer
			size += bytes
		}
		for i := range part {
			reply := &b.replies[b.places[begin+i]]
			if *reply = (transitions.Reply{Err: refused}); refused == nil {
				*reply = replies[i]
			}
		}
		begin += len(part)
	}
}

// filter leaves of the answers what the caller may see.
func (b *batch) filter(c *Caller) {
	for i, place := range b.places {
		reply := &b.replies[place]
		if reply.Err == nil {
			reply.Receipt, reply.Err = forCaller(c, b.commands[i].Workflow, reply.Receipt)
		}
	}
}

func (b *batch) receipts() []*transitions.Receipt {
	list := make([]*transitions.Receipt, len(b.places))
	for i, place := range b.places {
		list[i] = &b.replies[place].Receipt
	}
	return list
}

// commandOf reads one item. Its error is an InvalidRequest.
func commandOf(item []byte) (transitions.Command, error) {
	in, err := object[wire.BulkCommand]("the command", item)
	if err != nil {
		return transitions.Command{}, err
	}
	if in.Workflow == "" && in.Instance == "" {
		return transitions.Command{}, workflow.Errorf(workflow.InvalidRequest, "the command names neither a workflow nor an instance")
	}
	cmd := transitions.Command{
		Workflow: in.Workflow, Transition: in.Transition, BusinessKey: in.BusinessKey, Key: in.Key, Payload: in.Payload,
		Actor: in.Actor, Reason: in.Reason,
	}
	if err := termsOfItem(&in, &cmd); err != nil {
		return cmd, err
	}
	if in.Instance != "" {
		cmd.Instance, err = parse.ID(in.Instance)
	}
	return cmd, err
}

// termsOfItem reads the members that say what the headers of a single command do; see termsOf.
func termsOfItem(in *wire.BulkCommand, cmd *transitions.Command) (err error) {
	if in.Scope != nil {
		if err := transitions.CheckScope(*in.Scope); err != nil {
			return err
		}
		cmd.Scope = *in.Scope
	}
	if in.IfVersion != nil {
		if cmd.IfVersion = *in.IfVersion; cmd.IfVersion < 1 {
			return workflow.Errorf(workflow.InvalidRequest, "if_version is less than 1")
		}
	}
	if in.NotBefore != nil {
		if cmd.NotBefore, err = scheduled("not_before", *in.NotBefore, time.Now()); err != nil {
			return err
		}
	}
	if in.HappenedAt != nil {
		if cmd.HappenedAt, err = happened("happened_at", *in.HappenedAt); err != nil {
			return err
		}
	}
	if in.ReplayFor != nil {
		if err := lasting("replay_for", string(in.ReplayFor), false, &cmd.Replay); err != nil {
			return err
		}
	}
	if in.TombstoneFor != nil {
		text := string(in.TombstoneFor)
		if text == `"`+forever+`"` {
			text = forever
		}
		return lasting("tombstone_for", text, true, &cmd.Tombstone)
	}
	return nil
}

// renderBulk writes the results around the bodies as they are.
func (a *API) renderBulk(ctx context.Context, replies []transitions.Reply) []byte {
	out := []byte{'['}
	for i, reply := range replies {
		status, replayed := reply.Receipt.Status, reply.Receipt.Replayed
		body, err := bodyOf(reply.Receipt)
		if err = cmp.Or(reply.Err, err); err != nil {
			problem := transitions.ProblemOf(a.judged(ctx, err))
			status, replayed, body = problem.Status, false, problem.JSON()
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"status":`...)
		out = strconv.AppendInt(out, int64(status), 10)
		out = append(out, `,"replayed":`...)
		out = strconv.AppendBool(out, replayed)
		out = append(out, `,"body":`...)
		out = append(out, body...)
		out = append(out, '}')
	}
	return append(out, ']')
}

// splitArray returns the elements of a JSON array. Errors within an element are left to its reader, as long as its end is clear.
func splitArray(body []byte, limit int) (items [][]byte, err error) {
	in := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if in.PeekKind() != '[' {
		return nil, workflow.Errorf(workflow.InvalidRequest, "the body is not a JSON array of commands")
	}
	if _, err := in.ReadToken(); err != nil {
		return nil, brokenArray(err)
	}
	for in.PeekKind() != ']' {
		item, err := in.ReadValue()
		if err != nil {
			return nil, brokenArray(err)
		}
		if len(items) == limit {
			return nil, tooMany(limit)
		}
		items = append(items, bytes.Clone(item)) // it is the decoder's until the next read
	}
	if _, err := in.ReadToken(); err != nil {
		return nil, brokenArray(err)
	}
	if _, err := in.ReadToken(); err != io.EOF {
		return nil, workflow.Errorf(workflow.InvalidRequest, "something follows the JSON array")
	}
	return items, nil
}

func brokenArray(err error) error {
	return &workflow.Error{Code: workflow.InvalidRequest, Message: "the body is not a JSON array of commands; nothing of it was submitted",
		Fields: []workflow.FieldError{parse.JSON(err)}}
}

// splitLines returns the lines that are not blank.
func splitLines(body []byte, limit int) (items [][]byte, err error) {
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(items) == limit {
			return nil, tooMany(limit)
		}
		items = append(items, line)
	}
	return items, nil
}

func tooMany(limit int) error {
	return workflow.Errorf(workflow.TooLarge, "the request has more than %d commands", limit)
}
