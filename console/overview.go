package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/inspect"
)

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
