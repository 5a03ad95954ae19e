package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// instancePage is everything about one instance.
type instancePage struct {
	wire.InstanceView
	Options  []option
	Unknown  bool                // this node does not know the version of its workflow
	Flight   *wire.CommandStatus // the command in flight
	Why      []why               // why it does not move
	Children *wire.ChildPage     // nil: none
	Timeline []step              // newest first
	Newer    string              // addresses of other parts of the timeline
	Older    string
	Then     *pastPage // an earlier state, if requested
	Done     int64     // the version that the user has just created
	Chain    *inspect.Verification
}

// option is a transition and why it is refused.
type option struct {
	wire.Option
	Roles, NotBy []string // who may submit it
	Doc          string
	Here         bool // it leads out of this state
}

// pastPage is an earlier state of an instance.
type pastPage struct {
	wire.PastInstance
	Problem string
}

// step is a transition on the timeline.
type step struct {
	wire.Entry
	Lasted  time.Duration // time in the state before it; -1 if unknown
	Changes []change      // of the data
	More    int           // changes that are not shown
	Marked  bool
}

// Rows of an instance's page.
const (
	maxSteps    = 25
	maxChildren = 25
)

func (v *visit) instance() error {
	id := v.r.PathValue("id")
	view, err := get[wire.InstanceView](v, v1("instances", id), nil)
	if err != nil {
		return err
	}
	page := instancePage{InstanceView: view}
	page.Done, _ = strconv.ParseInt(v.Query("done"), 10, 64)
	for _, part := range []func(*instancePage) error{v.options, v.flight, v.children, v.timeline, v.past, v.chain, v.reasons} {
		if err := part(&page); err != nil {
			return err
		}
	}
	v.follow(&page)
	return v.show("instance", short(cmp.Or(page.BusinessKey, page.ID.String()), 60), page)
}

// options reads the transitions, those that lead out of this state first.
func (v *visit) options(page *instancePage) error {
	found, err := get[wire.Options](v, v1("instances", page.ID.String(), "transitions"), nil)
	if workflow.CodeOf(err) == workflow.WorkflowNotFound {
		page.Unknown = true
		return nil
	}
	if err != nil {
		return err
	}
	described, err := get[workflow.Description](v, v1("workflows", page.Workflow),
		url.Values{"version": {strconv.Itoa(page.Definition)}})
	for _, o := range found.Transitions {
		next := option{Option: o, Here: leaves(o)}
		for _, t := range described.Transitions {
			if t.Name == o.Transition && (slices.Contains(t.From, page.State) || next.Doc == "") {
				next.Roles, next.NotBy, next.Doc = t.Roles, t.NotBy, t.Doc
			}
		}
		page.Options = append(page.Options, next)
	}
	slices.SortStableFunc(page.Options, func(a, b option) int {
		switch {
		case a.Here == b.Here:
			return 0
		case a.Here:
			return -1
		}
		return 1
	})
	return ifVisible(err)
}

// flight reads the status of the command in flight, which may have completed in the meantime.
func (v *visit) flight(page *instancePage) error {
	ref := page.InFlight
	if ref == nil {
		return nil
	}
	status, err := get[wire.CommandStatus](v, v1("commands", ref.Scope, ref.Key), nil)
	switch workflow.CodeOf(err) {
	case workflow.CommandNotFound, workflow.KeyExpired, workflow.Forbidden:
		return nil
	}
	page.Flight = &status
	return err
}

// children reads a page of the instances that the instance has started.
func (v *visit) children(page *instancePage) error {
	q := url.Values{"limit": {strconv.Itoa(maxChildren)}, "cursor": {v.Query("children")}}
	found, err := get[wire.ChildPage](v, v1("instances", page.ID.String(), "children"), q)
	if len(found.Children) > 0 || found.Next != "" || v.Query("children") != "" {
		page.Children = &found
	}
	return err
}

// timeline reads the newest transitions, or those up to the version in the address, and one more for comparison.
func (v *visit) timeline(page *instancePage) error {
	last := page.Version
	if asked, err := strconv.ParseInt(v.Query("upto"), 10, 64); err == nil && asked > 0 && asked < last {
		last = asked
	}
	first := max(0, last-maxSteps)
	entries, err := v.history(page.ID.String(), max(0, first-1), last)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if e.Version <= first {
			continue
		}
		m := step{Entry: e, Lasted: -1, Marked: e.Version == page.Done}
		var before jsontext.Value
		if i > 0 {
			before, m.Lasted = entries[i-1].Data, e.At.Sub(entries[i-1].At)
		}
		m.Changes, m.More = difference(before, e.Data)
		page.Timeline = append(page.Timeline, m)
	}
	slices.Reverse(page.Timeline)
	here := v.At("instances", page.ID.String())
	if first > 0 {
		page.Older = here + query("upto", first) + "#timeline"
	}
	if last < page.Version {
		page.Newer = here + query("upto", min(page.Version, last+maxSteps)) + "#timeline"
	}
	return nil
}

// history reads the entries between two versions. A page of large entries may be short.
func (v *visit) history(id string, after, last int64) (entries []wire.Entry, err error) {
	for after < last {
		q := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {strconv.FormatInt(last-after, 10)}}
		page, err := get[wire.History](v, v1("instances", id, "history"), q)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.Entries...)
		if page.NextAfter <= after {
			break
		}
		after = page.NextAfter
	}
	return entries, nil
}

// past reads the state of the instance at the version or the time in the address.
func (v *visit) past(page *instancePage) error {
	q := url.Values{}
	switch version, at := v.Query("version"), v.Query("at"); {
	case at != "":
		t, err := parseTime(at)
		if err != nil {
			page.Then = &pastPage{Problem: workflow.AsError(err).Message}
			return nil
		}
		q.Set("at", t.Format(time.RFC3339Nano))
	case version != "" && version != strconv.FormatInt(page.Version, 10):
		q.Set("version", version)
	default:
		return nil
	}
	found, err := get[wire.PastInstance](v, v1("instances", page.ID.String()), q)
	page.Then = &pastPage{PastInstance: found}
	switch workflow.CodeOf(err) {
	case workflow.InstanceNotFound, workflow.InvalidRequest:
		page.Then.Problem = workflow.AsError(err).Message
		return nil
	}
	return err
}

// chain verifies all audit rows if the address asks for it.
func (v *visit) chain(page *instancePage) error {
	if v.Query("verify") == "" {
		return nil
	}
	found, err := get[inspect.Verification](v, "/v1/ops/verify", url.Values{"instance": {page.ID.String()}})
	page.Chain = &found
	return err
}

// follow updates the page with the log and the command in flight, whose attempts are not in the log. It polls for children, pauses of the
// workflow and leases. The verification of the chain is not repeated.
func (v *visit) follow(page *instancePage) {
	if !page.Open || page.Chain != nil {
		return
	}
	v.Updates = &Updates{Every: 50, Poll: pollInterval}
	if len(page.Timeline) == 0 || page.Timeline[0].Version != page.Version || !v.can.Has("stream") {
		return
	}
	v.Updates.Streams = []string{v.stream("after", page.Timeline[0].Position, "instance", page.ID.String())}
	if f := page.Flight; f != nil {
		v.Updates.Streams = append(v.Updates.Streams, v.stream("scope", f.Scope, "key", f.Key))
	}
}

// instanceData serves the complete data of an instance.
func (v *visit) instanceData() error {
	view, err := get[struct {
		Data jsontext.Value `json:"data"`
	}](v, v1("instances", v.r.PathValue("id")), v.params("version"))
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	_, _ = v.w.Write(view.Data)
	return nil
}
