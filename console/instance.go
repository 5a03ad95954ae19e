package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// instancePage is all of one instance.
type instancePage struct {
	wire.InstanceView
	Options  []option
	Unknown  bool                // this node does not know its workflow, or that version of it
	Flight   *wire.CommandStatus // the command whose outcome takes it on
	Why      []why               // why it does not move
	Family   *family             // nil: it has started none
	Timeline []moment            // the newest first
	Newer    string              // the addresses of other pieces of the timeline
	Older    string
	Then     *then // how it was, where that is asked for
	Done     int64 // the version that the user has just made
	Chain    *api.Verification
	streams  []string
}

func (p instancePage) live() *Live {
	if !p.Open || p.Chain != nil {
		return nil
	}
	return &Live{Streams: p.streams, Every: 50, Poll: pollEvery}
}

// option is a transition, and what is against it.
type option struct {
	wire.Option
	Roles, NotBy []string // to whom it is open
	Doc          string
	Here         bool // it leads out of this state
}

// then is how an instance was.
type then struct {
	wire.PastInstance
	Problem string
}

// moment is a transition on the timeline.
type moment struct {
	wire.Entry
	Lasted  time.Duration // how long the instance was in the state that it left; -1 where that is not known
	Changes []change      // of the data
	More    int           // changes that are not shown
	Marked  bool
}

// entriesOfPage is how many transitions a page shows.
const entriesOfPage = 25

func (v *visit) instance() error {
	id := v.r.PathValue("id")
	view, err := get[wire.InstanceView](v, "/v1"+segments("instances", id), nil)
	if err != nil {
		return err
	}
	page := instancePage{InstanceView: view}
	page.Done, _ = strconv.ParseInt(v.query("done"), 10, 64)
	for _, part := range []func(*instancePage) error{v.options, v.flight, v.family, v.timeline, v.past, v.chain} {
		if err := part(&page); err != nil {
			return err
		}
	}
	if err := v.reasons(&page); err != nil {
		return err
	}
	v.follow(&page)
	title := page.BusinessKey
	if title == "" {
		title = page.ID.String()
	}
	return v.show("instance", short(title, 60), page)
}

// options are what can be done, and why not; those that lead out of this state come first.
func (v *visit) options(page *instancePage) error {
	found, err := get[wire.Options](v, "/v1"+segments("instances", page.ID.String(), "transitions"), nil)
	if workflow.CodeOf(err) == workflow.WorkflowNotFound {
		page.Unknown = true
		return nil
	}
	if err != nil {
		return err
	}
	described, err := get[workflow.Description](v, "/v1"+segments("workflows", page.Workflow),
		url.Values{"version": {strconv.Itoa(page.Definition)}})
	for _, o := range found.Transitions {
		one := option{Option: o, Here: leaves(o)}
		for _, t := range described.Transitions {
			if t.Name == o.Transition && (slices.Contains(t.From, page.State) || one.Doc == "") {
				one.Roles, one.NotBy, one.Doc = t.Roles, t.NotBy, t.Doc
			}
		}
		page.Options = append(page.Options, one)
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
	return only(err)
}

// flight reads the status of the command in flight. It may have ended meanwhile.
func (v *visit) flight(page *instancePage) error {
	ref := page.InFlight
	if ref == nil {
		return nil
	}
	status, err := get[wire.CommandStatus](v, "/v1/commands"+segments(ref.Scope, ref.Key), nil)
	switch workflow.CodeOf(err) {
	case workflow.CommandNotFound, workflow.KeyExpired, workflow.Forbidden:
		return nil
	}
	page.Flight = &status
	return err
}

// timeline reads the newest transitions, or those up to the version that is asked for, and one more to compare with.
func (v *visit) timeline(page *instancePage) error {
	last := page.Version
	if asked, err := strconv.ParseInt(v.query("upto"), 10, 64); err == nil && asked > 0 && asked < last {
		last = asked
	}
	first := max(0, last-entriesOfPage)
	entries, err := v.history(page.ID.String(), max(0, first-1), last)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if e.Version <= first {
			continue
		}
		m := moment{Entry: e, Lasted: -1, Marked: e.Version == page.Done}
		var before jsontext.Value
		if i > 0 {
			before, m.Lasted = entries[i-1].Data, e.At.Sub(entries[i-1].At)
		}
		m.Changes, m.More = difference(before, e.Data)
		page.Timeline = append(page.Timeline, m)
	}
	slices.Reverse(page.Timeline)
	here := v.at("instances", page.ID.String())
	if first > 0 {
		page.Older = here + query("upto", first) + "#timeline"
	}
	if last < page.Version {
		page.Newer = here + query("upto", min(page.Version, last+entriesOfPage)) + "#timeline"
	}
	return nil
}

// history reads the entries of an instance after a version, up to another one. A page of large ones ends early.
func (v *visit) history(id string, after, last int64) (entries []wire.Entry, err error) {
	for after < last {
		q := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {strconv.FormatInt(last-after, 10)}}
		page, err := get[wire.History](v, "/v1"+segments("instances", id, "history"), q)
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

// past is how the instance was at a version or at a time.
func (v *visit) past(page *instancePage) error {
	q := url.Values{}
	switch version, at := v.query("version"), v.query("at"); {
	case at != "":
		t, err := momentOf(at)
		if err != nil {
			page.Then = &then{Problem: workflow.AsError(err).Message}
			return nil
		}
		q.Set("at", t.Format(time.RFC3339Nano))
	case version != "" && version != strconv.FormatInt(page.Version, 10):
		q.Set("version", version)
	default:
		return nil
	}
	found, err := get[wire.PastInstance](v, "/v1"+segments("instances", page.ID.String()), q)
	page.Then = &then{PastInstance: found}
	switch workflow.CodeOf(err) {
	case workflow.InstanceNotFound, workflow.InvalidRequest:
		page.Then.Problem = workflow.AsError(err).Message
		return nil
	}
	return err
}

// chain verifies the audit rows, for an operator who asks for that: it reads all of them.
func (v *visit) chain(page *instancePage) error {
	if v.query("verify") == "" {
		return nil
	}
	found, err := get[api.Verification](v, "/v1/ops/verify", url.Values{"instance": {page.ID.String()}})
	page.Chain = &found
	return err
}

// follow names the streams that tell that the page has changed: the log, and the command in flight, whose attempts are not in the log.
// No stream tells of a child, a pause of the workflow, a lease. To verify the chain reads all of it, which is done once.
func (v *visit) follow(page *instancePage) {
	if !v.can.Has("stream") || !page.Open || page.Chain != nil {
		return
	}
	if len(page.Timeline) > 0 && page.Timeline[0].Version == page.Version {
		page.streams = append(page.streams, v.stream("after", page.Timeline[0].Position, "instance", page.ID.String()))
	}
	if f := page.Flight; f != nil && page.streams != nil {
		page.streams = append(page.streams, v.at("live")+"?"+url.Values{"scope": {f.Scope}, "key": {f.Key}}.Encode())
	}
}

// instanceData answers with the unabridged data of an instance.
func (v *visit) instanceData() error {
	q := url.Values{}
	if version := v.query("version"); version != "" {
		q.Set("version", version)
	}
	a, err := v.ask(http.MethodGet, "/v1"+segments("instances", v.r.PathValue("id")), q, nil)
	if err != nil {
		return err
	}
	var view struct {
		Data jsontext.Value `json:"data"`
	}
	if err := a.into(&view); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	_, _ = v.w.Write(view.Data)
	return nil
}

// pass answers with what the API does.
func (v *visit) pass(path string, q url.Values) error {
	a, err := v.ask(http.MethodGet, path, q, nil)
	if err != nil {
		return err
	}
	return v.forward(a, a.body.Bytes())
}

// forward answers as the API does, under its policy for that, with this body.
func (v *visit) forward(a *answer, body []byte) error {
	for _, name := range []string{"Content-Type", "Content-Security-Policy"} {
		v.w.Header().Set(name, a.header.Get(name))
	}
	_, _ = v.w.Write(body)
	return nil
}
