package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
)

// overview is the state of the installation, without the parts that the user may not read.
type overview struct {
	Counts *counted
	Keys   *inspect.Keys
	Sinks  []inspect.SinkInfo
	Nodes  []api.Node
	Paused *api.PausedList
	Recent []wire.Event // the newest first
	Moved  bool         // there is a log that he may read
	stream string
}

// counted is how many instances there are.
type counted struct {
	inspect.Counts
	Workflows []countedFlow
}

// countedFlow is those of a workflow, of all its versions.
type countedFlow struct {
	Name   string
	Total  int64
	Exact  bool
	States []inspect.InstanceCount
}

// live polls: the log reports changes of instances, but not stuck commands.
func (o overview) live() *Live {
	live := &Live{Every: 1000, Poll: pollEvery}
	if o.stream != "" {
		live.Streams = []string{o.stream}
	}
	return live
}

func (v *visit) overview() error {
	var page overview
	for _, part := range []func(*overview) error{v.counts, v.forOperators, v.recent} {
		if err := only(part(&page)); err != nil {
			return err
		}
	}
	return v.show("overview", "Overview", page)
}

func (v *visit) counts(page *overview) error {
	counts, err := get[inspect.Counts](v, "/v1/counts", nil)
	if err == nil {
		page.Counts = &counted{Counts: counts, Workflows: byWorkflow(counts.Counts)}
	}
	return err
}

// byWorkflow adds up the versions of each workflow.
func byWorkflow(list []inspect.InstanceCount) (all []countedFlow) {
	for _, c := range list {
		i := slices.IndexFunc(all, func(f countedFlow) bool { return f.Name == c.Workflow })
		if i < 0 {
			i, all = len(all), append(all, countedFlow{Name: c.Workflow, Exact: true})
		}
		f := &all[i]
		f.Total, f.Exact = f.Total+c.Count, f.Exact && c.Exact
		j := slices.IndexFunc(f.States, func(s inspect.InstanceCount) bool { return s.State == c.State })
		if j < 0 {
			f.States = append(f.States, c)
			continue
		}
		f.States[j].Count, f.States[j].Exact = f.States[j].Count+c.Count, f.States[j].Exact && c.Exact
	}
	slices.SortStableFunc(all, func(a, b countedFlow) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// forOperators is what operators see to.
func (v *visit) forOperators(page *overview) error {
	if !v.can.May("operate", everything) {
		return nil
	}
	keys, err := get[inspect.Keys](v, "/v1/ops/keys", nil)
	if err != nil {
		return err
	}
	page.Keys = &keys
	sinks, err := get[api.SinkList](v, "/v1/ops/sinks", nil)
	if err != nil {
		return err
	}
	page.Sinks = sinks.Sinks
	nodes, err := get[api.NodeList](v, "/v1/ops/nodes", nil)
	if err != nil {
		return err
	}
	page.Nodes = nodes.Nodes
	paused, err := v.pausedFirst("100")
	page.Paused = &paused
	return err
}

// recentEvents is how many transitions the overview shows.
const recentEvents = 10

func (v *visit) recent(page *overview) error {
	list, head, err := v.newest(url.Values{}, recentEvents)
	if err != nil {
		return err
	}
	page.Recent, page.Moved = list, true
	if v.can.Has("stream") {
		page.stream = v.stream("after", strconv.FormatInt(head, 10))
	}
	return nil
}
