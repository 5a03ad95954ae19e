package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/workflow"
)

// flowList is the workflows that this node knows.
type flowList struct {
	Workflows []api.WorkflowSummary
	Paused    map[string]api.PausedWorkflow
}

func (v *visit) workflows() error {
	list, err := get[api.WorkflowList](v, "/v1/workflows", nil)
	if err != nil {
		return err
	}
	page := flowList{list.Workflows, map[string]api.PausedWorkflow{}}
	if v.can.May("operate", everything) {
		paused, err := get[api.PausedList](v, "/v1/ops/paused", nil)
		if err != nil {
			return err
		}
		for _, p := range paused.Workflows {
			page.Paused[p.Workflow] = p
		}
	}
	return v.show("workflows", "Workflows", page)
}

// flowPage is a workflow in one of its versions.
type flowPage struct {
	workflow.Description
	Counts   []api.InstanceCount
	Versions []int // of which there are instances, and this one
	Pause    *api.PausedWorkflow
	Unknown  bool // this node does not know the version
	Starts   []workflow.TransitionDescription
	Others   []workflow.TransitionDescription
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
	counts, err := get[api.Counts](v, "/v1/counts", url.Values{"workflow": {name}})
	if only(err) != nil {
		return err
	}
	page.Versions = []int{described.Version}
	for _, c := range counts.Counts {
		if c.Definition == described.Version {
			page.Counts = append(page.Counts, c)
		}
		if !slices.Contains(page.Versions, c.Definition) {
			page.Versions = append(page.Versions, c.Definition)
		}
	}
	slices.Sort(page.Versions)
	if v.can.May("operate", everything) {
		paused, err := get[api.PausedList](v, "/v1/ops/paused", nil)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(paused.Workflows, func(p api.PausedWorkflow) bool { return p.Workflow == name }); i >= 0 {
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
