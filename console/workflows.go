package console

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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

// markedTransitions is the number of newest transitions marked in a diagram.
const markedTransitions = 100

// arrow is an arrow of a diagram.
type arrow struct{ from, to workflow.State }

// instanceDiagram serves the diagram of an instance's workflow, with its state and its transitions.
func (v *visit) instanceDiagram() error {
	path := v1("instances", v.r.PathValue("id"))
	a, err := v.ask(http.MethodGet, path+"/diagram", url.Values{"format": {"svg"}}, nil)
	if err != nil {
		return err
	}
	version, _ := strconv.ParseInt(v.Query("v"), 10, 64)
	history, err := get[wire.History](v, path+"/history", url.Values{"after": {strconv.FormatInt(max(0, version-markedTransitions), 10)},
		"limit": {strconv.Itoa(markedTransitions)}})
	if err != nil {
		return err
	}
	var taken []arrow
	for _, e := range history.Entries {
		if a := (arrow{e.From, e.To}); !slices.Contains(taken, a) {
			taken = append(taken, a)
		}
	}
	return v.forward(a, mark(a.body.Bytes(), taken))
}

// mark adds styles to a diagram that highlight arrows. Arrows have data-from and data-to; the start of a workflow is the state "".
func mark(svg []byte, taken []arrow) []byte {
	var rules strings.Builder
	for _, scheme := range []struct{ name, colour string }{{"light", "#1b6f5c"}, {"dark", "#7fd6bf"}} {
		fmt.Fprintf(&rules, "@media (prefers-color-scheme:%s){", scheme.name)
		for _, a := range taken {
			arrow := fmt.Sprintf(`[data-from="%s"][data-to="%s"]`, cssText(string(a.from)), cssText(string(a.to)))
			fmt.Fprintf(&rules, "%s .pawl-lines{stroke:%s;stroke-width:2.8}%[1]s .pawl-tips{fill:%[2]s}", arrow, scheme.colour)
		}
		rules.WriteString("}")
	}
	return bytes.Replace(svg, []byte("</style>"), []byte(rules.String()+"</style>"), 1)
}

// cssText escapes a text for a CSS string in XML: all characters except letters and digits.
func cssText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\%x `, r)
		}
	}
	return b.String()
}
