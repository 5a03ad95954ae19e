package console

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// logPage is a part of the log, newest first.
type logPage struct {
	Events        []logEvent
	Head          int64
	From          int64  // the page has the matching events after this position
	Older, Newest string // addresses of other parts
	Problem       string
	Origin        string // of this node, for copied requests
}

// logEvent is an event with its JSON.
type logEvent struct {
	wire.Event
	Text jsontext.Value
}

// eventFilters are the parameters that select events.
var eventFilters = []string{"workflow", "instance", "business_key", "type", "state"}

// Limits of a page of the log. A filtered page searches more positions.
const (
	logPositions      = 50
	filteredPositions = 1000
	maxEvents         = 1000
)

func (v *visit) log() error {
	page := logPage{Origin: v.origin()}
	if err := v.readLog(&page); err != nil {
		if workflow.CodeOf(err).Info().Status >= 500 || workflow.CodeOf(err) == workflow.Unauthorized {
			return err
		}
		page.Problem = workflow.AsError(err).Message
	}
	return v.show("log", "Log", page)
}

// readLog reads the positions up to the one that the address names, or the newest ones.
func (v *visit) readLog(page *logPage) (err error) {
	filter, positions := v.params(eventFilters...), int64(logPositions)
	if page.Head, err = v.head(filter); err != nil {
		return err
	}
	last := page.Head
	if upto, err := strconv.ParseInt(v.Query("upto"), 10, 64); err == nil && upto > 0 && upto < last {
		last = upto
	}
	if len(filter) > 0 {
		positions = filteredPositions
	}
	page.From = max(0, last-positions)
	found, _, err := v.events(filter, strconv.FormatInt(page.From, 10), maxEvents)
	if err != nil {
		return err
	}
	page.Events = slices.DeleteFunc(found, func(e logEvent) bool { return e.Position > last })
	slices.Reverse(page.Events)
	if last < page.Head {
		page.Newest = v.addressWith("upto", "")
	} else if v.can.Has("stream") {
		filter.Set("after", strconv.FormatInt(last, 10))
		v.Updates = &Updates{Streams: []string{v.At("live") + "?" + filter.Encode()}, Every: 100}
	}
	if page.From > 0 {
		page.Older = v.addressWith("upto", strconv.FormatInt(page.From, 10))
	}
	return nil
}

// head returns the newest position of the log.
func (v *visit) head(filter url.Values) (int64, error) {
	_, head, err := v.events(filter, "now", 1)
	return head, err
}

// events reads events after a position, or the oldest ones if those were removed.
func (v *visit) events(filter url.Values, after string, limit int) (list []logEvent, head int64, err error) {
	q := url.Values{"after": {after}, "limit": {strconv.Itoa(limit)}}
	maps.Copy(q, filter)
	page, err := get[wire.Events](v, "/v1/events", q)
	if workflow.CodeOf(err) == workflow.EventsGone {
		q.Set("after", "start")
		page, err = get[wire.Events](v, "/v1/events", q)
	}
	if err != nil {
		return nil, 0, err
	}
	for _, text := range page.Events {
		e := logEvent{Text: text}
		if err := decode(text, &e.Event); err != nil {
			return nil, 0, err
		}
		list = append(list, e)
	}
	return list, page.Head, nil
}

// stream returns the address of an event stream for a page, from pairs of a parameter and a value.
func (v *visit) stream(pairs ...any) string { return v.At("live") + query(pairs...) }

// live serves an event stream of the API to the user: of the log, or of a command.
func (v *visit) live() error {
	if site := v.r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return errForged
	}
	sent := v.r.URL.Query()
	path, q := "/v1/events", url.Values{}
	if sent.Has("key") {
		path = v1("commands", sent.Get("scope"), sent.Get("key"))
	} else {
		for _, name := range append([]string{"after"}, eventFilters...) {
			if sent.Has(name) {
				q[name] = sent[name]
			}
		}
	}
	r, err := v.request(http.MethodGet, path, q, nil, "Accept", "text/event-stream", "Last-Event-ID", v.r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	r.Body = http.NoBody
	v.API.ServeHTTP(v.w, r)
	return nil
}

// overview is the state of the installation, without what the user may not read.
type overview struct {
	Counts    *inspect.Counts
	Workflows []workflowCount // Counts by workflow
	Keys      *inspect.Keys
	Sinks     []inspect.SinkInfo
	Nodes     []inspect.NodeInfo
	Paused    *api.PausedList
	Recent    []logEvent // newest first
	Log       bool       // the user may read the log
}

// workflowCount is the number of instances of a workflow, over all versions.
type workflowCount struct {
	Name   string
	Total  int64
	Exact  bool
	States []inspect.InstanceCount
}

func (v *visit) overview() error {
	var page overview
	v.Updates = &Updates{Every: 1000, Poll: pollInterval} // the log does not report stuck commands
	for _, part := range []func(*overview) error{v.counts, v.operations, v.recent} {
		if err := ifVisible(part(&page)); err != nil {
			return err
		}
	}
	return v.show("overview", "Overview", page)
}

func (v *visit) counts(page *overview) error {
	counts, err := get[inspect.Counts](v, "/v1/counts", nil)
	if err == nil {
		// Add up the versions of each workflow.
		var all []workflowCount
		for _, c := range counts.Counts {
			i := slices.IndexFunc(all, func(w workflowCount) bool { return w.Name == c.Workflow })
			if i < 0 {
				i, all = len(all), append(all, workflowCount{Name: c.Workflow, Exact: true})
			}
			w := &all[i]
			w.Total, w.Exact = w.Total+c.Count, w.Exact && c.Exact
			if j := slices.IndexFunc(w.States, func(s inspect.InstanceCount) bool { return s.State == c.State }); j >= 0 {
				w.States[j].Count, w.States[j].Exact = w.States[j].Count+c.Count, w.States[j].Exact && c.Exact
			} else {
				w.States = append(w.States, c)
			}
		}
		slices.SortStableFunc(all, func(a, b workflowCount) int { return cmp.Compare(a.Name, b.Name) })
		page.Counts, page.Workflows = &counts, all
	}
	return err
}

// operatesAll reports whether the user operates the whole tenant.
func (v *visit) operatesAll() bool { return v.can.May(auth.Operate, auth.Target{}) }

// operations reads what operators monitor.
func (v *visit) operations(page *overview) error {
	if !v.operatesAll() {
		return nil
	}
	keys, err := get[inspect.Keys](v, "/v1/ops/keys", nil)
	if err != nil {
		return err
	}
	sinks, err := get[api.SinkList](v, "/v1/ops/sinks", nil)
	if err != nil {
		return err
	}
	nodes, err := get[api.NodeList](v, "/v1/ops/nodes", nil)
	if err != nil {
		return err
	}
	paused, err := get[api.PausedList](v, "/v1/ops/paused", url.Values{"limit": {"100"}})
	page.Keys, page.Sinks, page.Nodes, page.Paused = &keys, sinks.Sinks, nodes.Nodes, &paused
	return err
}

// pausedWorkflows returns the paused workflows by name; none for users who do not operate the tenant.
func (v *visit) pausedWorkflows() (map[string]inspect.PausedWorkflow, error) {
	paused := map[string]inspect.PausedWorkflow{}
	if !v.operatesAll() {
		return paused, nil
	}
	list, err := get[api.PausedList](v, "/v1/ops/paused", url.Values{"limit": {"1"}})
	for _, p := range list.Workflows {
		paused[p.Workflow] = p
	}
	return paused, err
}

// recentPositions is the number of transitions on the overview.
const recentPositions = 10

func (v *visit) recent(page *overview) error {
	head, err := v.head(nil)
	if err != nil {
		return err
	}
	page.Log = true
	if v.can.Has("stream") {
		v.Updates.Streams = []string{v.stream("after", head)}
	}
	if head == 0 {
		return nil
	}
	page.Recent, _, err = v.events(nil, strconv.FormatInt(max(0, head-recentPositions), 10), recentPositions)
	slices.Reverse(page.Recent)
	return err
}
