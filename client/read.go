package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// Instance returns an instance with its pending timers and commands.
func (c *Client) Instance(ctx context.Context, of Target) (InstanceView, error) {
	return get[InstanceView](ctx, c, of.path(), nil)
}

// Options returns what the caller can do with an instance now, and why not.
func (c *Client) Options(ctx context.Context, of Target) (Options, error) {
	return get[Options](ctx, c, of.path()+"/transitions", nil)
}

// Me returns the caller's identity, and whether it has a grant; "" skips that.
func (c *Client) Me(ctx context.Context, grant string) (Me, error) {
	q := url.Values{}
	add(q, "can", grant)
	return get[Me](ctx, c, "/v1/me", q)
}

// Workflows lists the newest versions of the node's workflows by name.
func (c *Client) Workflows(ctx context.Context) ([]WorkflowSummary, error) {
	list, err := get[wire.WorkflowList](ctx, c, "/v1/workflows", nil)
	return list.Workflows, err
}

// Ticket issues a ticket within the caller's own permissions. Repeated calls issue several tickets.
func (c *Client) Ticket(ctx context.Context, want TicketRequest) (Ticket, error) {
	return post[Ticket](ctx, c, "/v1/tickets", want)
}

// InstanceFilter selects instances. Empty fields select all.
type InstanceFilter struct {
	Workflow     string
	Definition   int
	States       []workflow.State // any of these
	Open         *bool            // not in a final state
	BusinessKey  string           // requires Workflow
	Attributes   map[string]string
	Ranges       map[string]AttributeRange // by attribute
	CreatedAfter time.Time                 // inclusive, as is UpdatedAfter

	CreatedBefore, UpdatedAfter, UpdatedBefore time.Time

	NewestUpdateFirst bool // defaults to the oldest first
}

// AttributeRange selects values of an attribute, compared bytewise as text. An empty bound selects all.
type AttributeRange struct {
	From   string // inclusive
	Before string // exclusive
	Prefix string // values with this prefix
}

func (f *InstanceFilter) query() url.Values {
	q := url.Values{"limit": {strconv.Itoa(entriesOfPage)}}
	add(q, "workflow", f.Workflow)
	if f.Definition != 0 {
		add(q, "definition", strconv.Itoa(f.Definition))
	}
	for _, s := range f.States {
		q.Add("state", string(s))
	}
	if f.Open != nil {
		add(q, "open", strconv.FormatBool(*f.Open))
	}
	add(q, "business_key", f.BusinessKey)
	for name, value := range f.Attributes {
		q.Set("attr."+name, value)
	}
	for name, r := range f.Ranges {
		add(q, "attr."+name+".from", r.From)
		add(q, "attr."+name+".before", r.Before)
		add(q, "attr."+name+".prefix", r.Prefix)
	}
	for name, at := range map[string]time.Time{"created_after": f.CreatedAfter, "created_before": f.CreatedBefore,
		"updated_after": f.UpdatedAfter, "updated_before": f.UpdatedBefore} {
		add(q, name, timeText(at))
	}
	if f.NewestUpdateFirst {
		add(q, "order", "updated")
	}
	return q
}

// add sets a parameter unless it is empty.
func add(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// entriesOfPage is the page size of lists.
const entriesOfPage = 100

// Instances lists instances and reads pages as needed. An error is yielded last.
func (c *Client) Instances(ctx context.Context, f InstanceFilter) iter.Seq2[Instance, error] {
	q := f.query()
	return pages(func(cursor string) ([]Instance, string, error) {
		page, err := get[wire.InstancePage](ctx, c, "/v1/instances", with(q, "cursor", cursor))
		return page.Instances, page.Next, err
	})
}

// ChildFilter selects the children of an instance. Empty fields select all.
type ChildFilter struct {
	States []workflow.State // any of these
	Open   *bool            // not in a final state
	Stuck  *bool            // a command of it waits for an operator
}

// Children lists the instances started by an instance in the order of their start, with their current state. An error is yielded last.
func (c *Client) Children(ctx context.Context, of Target, f ChildFilter) iter.Seq2[Child, error] {
	q := (&InstanceFilter{States: f.States, Open: f.Open}).query()
	if f.Stuck != nil {
		q.Set("stuck", strconv.FormatBool(*f.Stuck))
	}
	return pages(func(cursor string) ([]Child, string, error) {
		page, err := get[wire.ChildPage](ctx, c, of.path()+"/children", with(q, "cursor", cursor))
		return page.Children, page.Next, err
	})
}

// History lists the transitions of an instance after a version, oldest first. An error is yielded last.
func (c *Client) History(ctx context.Context, of Target, after int64) iter.Seq2[Entry, error] {
	q := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(entriesOfPage)}}
	return pages(func(next string) ([]Entry, string, error) {
		page, err := get[wire.History](ctx, c, of.path()+"/history", with(q, "after", next))
		if page.NextAfter == 0 {
			return page.Entries, "", err
		}
		return page.Entries, strconv.FormatInt(page.NextAfter, 10), err
	})
}

// with returns a query with another value of a parameter; "" changes nothing.
func with(q url.Values, name, value string) url.Values {
	out := url.Values{}
	for n, values := range q {
		out[n] = values
	}
	add(out, name, value)
	return out
}

// pages yields the entries of a list and reads pages as needed. next is "" for the first page and after the last.
func pages[T any](read func(next string) (entries []T, after string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for next := ""; ; {
			entries, after, err := read(next)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if next = after; next == "" {
				return
			}
		}
	}
}

// Decode parses JSON written by a workflow: the data of an instance or an event, or the result of a command. It ignores unknown members.
func Decode[T any](text jsontext.Value) (v T, err error) {
	if err := json.Unmarshal(text, &v, reading); err != nil {
		return v, &workflow.Error{Code: workflow.Internal, Message: "cannot decode the JSON", Cause: err}
	}
	return v, nil
}

// Types of responses, as defined by package wire.
type (
	Instance      = wire.Instance
	InstanceView  = wire.InstanceView
	Child         = wire.Child
	Options       = wire.Options
	Entry         = wire.Entry
	CommandStatus = wire.CommandStatus
	Filter        = wire.Filter
	Me            = wire.Me
	TicketRequest = wire.TicketRequest
	Ticket        = wire.Ticket

	WorkflowSummary = wire.WorkflowSummary
)
