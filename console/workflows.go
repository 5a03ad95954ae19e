package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// workflowList is the workflows that this node knows.
type workflowList struct {
	wire.WorkflowList
	Paused map[string]inspect.PausedWorkflow
	Counts map[string][]versionCount // nil if the user may not read them
}

func (v *visit) workflows() (err error) {
	var page workflowList
	if page.WorkflowList, err = get[wire.WorkflowList](v, "/v1/workflows", nil); err != nil {
		return err
	}
	if page.Paused, err = v.pausedWorkflows(); err != nil {
		return err
	}
	open, err := get[inspect.Counts](v, "/v1/counts", url.Values{"open": {"true"}})
	if ifVisible(err) != nil {
		return err
	}
	if err == nil {
		page.Counts = map[string][]versionCount{}
		for _, c := range open.Counts {
			page.Counts[c.Workflow] = addCount(page.Counts[c.Workflow], c)
		}
	}
	v.Updates = polling
	return v.show("workflows", "Workflows", page)
}

// versionCount is the number of instances of a version of a workflow.
type versionCount struct {
	Version     int
	Open, Ended int64
	Exact       bool
}

// addCount adds the instances in one state to their version. Versions are sorted.
func addCount(all []versionCount, c inspect.InstanceCount) []versionCount {
	i, found := slices.BinarySearchFunc(all, c.Definition, func(v versionCount, n int) int { return v.Version - n })
	if !found {
		all = slices.Insert(all, i, versionCount{Version: c.Definition, Exact: true})
	}
	v := &all[i]
	v.Exact = v.Exact && c.Exact
	if c.Open {
		v.Open += c.Count
	} else {
		v.Ended += c.Count
	}
	return all
}

// workflowPage is a version of a workflow.
type workflowPage struct {
	workflow.Description
	Counts         []inspect.InstanceCount
	Versions       []versionCount // with instances, and this one
	Pause          *inspect.PausedWorkflow
	Starts, Others []workflow.TransitionDescription
}

// Only returns the version whose instances are counted; "" for all.
func (p workflowPage) Only() string {
	if len(p.Versions) == 1 {
		return ""
	}
	return strconv.Itoa(p.Version)
}

func (v *visit) workflow() error {
	name := v.r.PathValue("workflow")
	described, err := get[workflow.Description](v, v1("workflows", name), v.params("version"))
	if err != nil {
		return err
	}
	page := workflowPage{Description: described, Versions: []versionCount{{Version: described.Version, Exact: true}}}
	for _, t := range described.Transitions {
		if t.Start {
			page.Starts = append(page.Starts, t)
		} else {
			page.Others = append(page.Others, t)
		}
	}
	counts, err := get[inspect.Counts](v, "/v1/counts", url.Values{"workflow": {name}})
	if ifVisible(err) != nil {
		return err
	}
	for _, c := range counts.Counts {
		if c.Definition == described.Version {
			page.Counts = append(page.Counts, c)
		}
		page.Versions = addCount(page.Versions, c)
	}
	paused, err := v.pausedWorkflows()
	if err != nil {
		return err
	}
	if p, is := paused[name]; is {
		page.Pause = &p
	}
	v.Updates = polling
	return v.render(http.StatusOK, "workflow", name+" "+strconv.Itoa(described.Version), page)
}

func (v *visit) workflowDiagram() error {
	q := v.params("version")
	q.Set("format", "svg")
	return v.proxy(v1("workflows", v.r.PathValue("workflow"), "diagram"), q)
}
