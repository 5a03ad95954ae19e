package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// flowList is the workflows that this node knows.
type flowList struct {
	polled
	Workflows []api.WorkflowSummary
	Paused    map[string]inspect.PausedWorkflow
	Counts    map[string][]countedVersion // nil: not for him
}

func (v *visit) workflows() error {
	list, err := get[api.WorkflowList](v, "/v1/workflows", nil)
	if err != nil {
		return err
	}
	page := flowList{Workflows: list.Workflows, Paused: map[string]inspect.PausedWorkflow{}}
	if v.can.May("operate", everything) {
		paused, err := v.pausedFirst("1")
		if err != nil {
			return err
		}
		for _, p := range paused.Workflows {
			page.Paused[p.Workflow] = p
		}
	}
	open, err := get[inspect.Counts](v, "/v1/counts", url.Values{"open": {"true"}})
	if only(err) != nil {
		return err
	}
	if err == nil {
		page.Counts = map[string][]countedVersion{}
		for _, c := range open.Counts {
			page.Counts[c.Workflow] = addVersion(page.Counts[c.Workflow], c)
		}
	}
	return v.show("workflows", "Workflows", page)
}

// countedVersion is how many instances are on a version of a workflow.
type countedVersion struct {
	Version     int
	Open, Ended int64
	Exact       bool
}

// addVersion adds those that stand in one state, and keeps the versions in order.
func addVersion(all []countedVersion, c inspect.InstanceCount) []countedVersion {
	i, is := slices.BinarySearchFunc(all, c.Definition, func(v countedVersion, n int) int { return v.Version - n })
	if !is {
		all = slices.Insert(all, i, countedVersion{Version: c.Definition, Exact: true})
	}
	of := &all[i]
	of.Exact = of.Exact && c.Exact
	if c.Open {
		of.Open += c.Count
	} else {
		of.Ended += c.Count
	}
	return all
}

// flowPage is a workflow in one of its versions.
type flowPage struct {
	polled
	workflow.Description
	Counts   []inspect.InstanceCount
	Versions []countedVersion // of which there are instances, and this one
	Pause    *inspect.PausedWorkflow
	Unknown  bool // this node does not know the version
	Starts   []workflow.TransitionDescription
	Others   []workflow.TransitionDescription
}

// Only is the only version whose instances are counted; "" if all are.
func (p flowPage) Only() string {
	if len(p.Versions) == 1 {
		return ""
	}
	return strconv.Itoa(p.Version)
}

func (v *visit) workflow() error {
	name, q := v.r.PathValue("workflow"), url.Values{}
	if version := v.query("version"); version != "" {
		q.Set("version", version)
	}
	described, err := get[workflow.Description](v, "/v1"+segments("workflows", name), q)
	if err != nil {
		return err
	}
	page := flowPage{Description: described}
	for _, t := range described.Transitions {
		if t.Start {
			page.Starts = append(page.Starts, t)
		} else {
			page.Others = append(page.Others, t)
		}
	}
	counts, err := get[inspect.Counts](v, "/v1/counts", url.Values{"workflow": {name}})
	if only(err) != nil {
		return err
	}
	page.Versions = []countedVersion{{Version: described.Version, Exact: true}}
	for _, c := range counts.Counts {
		if c.Definition == described.Version {
			page.Counts = append(page.Counts, c)
		}
		page.Versions = addVersion(page.Versions, c)
	}
	if v.can.May("operate", everything) {
		paused, err := v.pausedFirst("1")
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(paused.Workflows, func(p inspect.PausedWorkflow) bool { return p.Workflow == name }); i >= 0 {
			page.Pause = &paused.Workflows[i]
		}
	}
	return v.render(http.StatusOK, "workflow", name+" "+strconv.Itoa(described.Version), page)
}

func (v *visit) workflowDiagram() error {
	q := url.Values{"format": {"svg"}}
	if version := v.query("version"); version != "" {
		q.Set("version", version)
	}
	return v.pass("/v1"+segments("workflows", v.r.PathValue("workflow"), "diagram"), q)
}
