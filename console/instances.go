package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// instanceList is a page of the instances that the address selects.
type instanceList struct {
	Filter    listFilter
	Workflows []string // that the user may see; nil where he may not see the list
	States    []workflow.State
	Instances []wire.Instance
	Actions   []string // transitions that can be done with several of them
	Problem   string
	Next      string // the address of the next page
	stream    string
}

// listFilter is what the address says.
type listFilter struct {
	Workflow, State, Open, Key, Order string
	Definition                        string // the version of the workflow
	Attributes                        []attribute
	Times                             []timeBound
	More                              bool // there are filters of those that are seldom used
}

type attribute struct{ Name, Value string }

type timeBound struct{ Name, Label, Value string }

var timeBounds = []timeBound{{Name: "created_after", Label: "Created since"}, {Name: "created_before", Label: "Created before"},
	{Name: "updated_after", Label: "Updated since"}, {Name: "updated_before", Label: "Updated before"}}

// pageOfList is how many rows of a list are on a page.
const pageOfList = 50

func (l instanceList) live() *Live {
	if l.stream == "" {
		return nil
	}
	return &Live{Streams: []string{l.stream}, Every: 150}
}

func (v *visit) instances() error {
	page := instanceList{Filter: v.listFilter()}
	if err := only(v.choices(&page)); err != nil {
		return err
	}
	q, err := page.Filter.query(v.query("cursor"))
	var list api.InstancePage
	if err == nil {
		list, err = get[api.InstancePage](v, "/v1/instances", q)
	}
	status := http.StatusOK
	if err != nil {
		info := workflow.CodeOf(err).Info()
		if info.Status >= 500 || info.Status == http.StatusUnauthorized {
			return err
		}
		page.Problem, status = workflow.AsError(err).Message, info.Status
	}
	page.Instances = list.Instances
	if list.Next != "" {
		again := v.r.URL.Query()
		again.Set("cursor", list.Next)
		page.Next = v.at("instances") + "?" + again.Encode()
	}
	if err == nil && v.query("cursor") == "" {
		page.stream = v.followed(page.Filter)
	}
	return v.render(status, "instances", "Instances", page)
}

// followed is the event stream of a list; "" where the user may not follow it.
func (v *visit) followed(f listFilter) string {
	filter := url.Values{}
	if f.Workflow != "" {
		filter.Set("workflow", f.Workflow)
	}
	if f.Key != "" && f.Workflow != "" {
		filter.Set("business_key", f.Key)
	}
	head, err := v.head(filter)
	if err != nil || !v.can.Has("stream") {
		return ""
	}
	return v.stream("after", head, "workflow", f.Workflow, "business_key", filter.Get("business_key"))
}

func (v *visit) listFilter() listFilter {
	f := listFilter{Workflow: v.query("workflow"), State: v.query("state"), Open: v.query("open"), Key: v.query("business_key"),
		Order: v.query("order"), Definition: v.query("definition")}
	f.More = f.Definition != ""
	for _, b := range timeBounds {
		b.Value = v.query(b.Name)
		f.Times = append(f.Times, b)
		f.More = f.More || b.Value != ""
	}
	return f
}

// choices are the workflows, states and attributes that can be chosen.
func (v *visit) choices(page *instanceList) error {
	f := &page.Filter
	asked := v.r.URL.Query()
	if f.Workflow != "" {
		described, err := get[workflow.Description](v, "/v1"+segments("workflows", f.Workflow), nil)
		if err == nil {
			for _, s := range described.States {
				page.States = append(page.States, s.Name)
			}
			for _, t := range described.Transitions {
				if !t.Start && !slices.Contains(page.Actions, t.Name) && v.May("submit", f.Workflow, "", t.Name) {
					page.Actions = append(page.Actions, t.Name)
				}
			}
			for _, name := range described.Attributes {
				f.Attributes = append(f.Attributes, attribute{name, asked.Get("attr." + name)})
			}
		}
	}
	list, err := get[api.WorkflowList](v, "/v1/workflows", nil)
	for _, w := range list.Workflows {
		page.Workflows = append(page.Workflows, w.Name)
		if f.Workflow == "" {
			for _, s := range w.States {
				if !slices.Contains(page.States, s) {
					page.States = append(page.States, s)
				}
			}
		}
	}
	if f.Workflow == "" {
		slices.Sort(page.States)
	}
	return err
}

// query is what the API is asked for. Error: InvalidRequest.
func (f *listFilter) query(cursor string) (url.Values, error) {
	q := url.Values{"limit": {strconv.Itoa(pageOfList)}}
	for name, value := range map[string]string{"workflow": f.Workflow, "state": f.State, "open": f.Open, "business_key": f.Key,
		"order": f.Order, "definition": f.Definition, "cursor": cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for _, a := range f.Attributes {
		if a.Value != "" {
			q.Set("attr."+a.Name, a.Value)
		}
	}
	for _, b := range f.Times {
		if b.Value == "" {
			continue
		}
		t, err := momentOf(b.Value)
		if err != nil {
			return nil, err
		}
		q.Set(b.Name, t.Format(time.RFC3339Nano))
	}
	return q, nil
}

// momentOf reads a time as a browser's field has it, or as the API does; it is in UTC where nothing else is said.
func momentOf(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, workflow.Errorf(workflow.InvalidRequest, "%q is no time such as 2026-01-31T12:00", short(text, 40))
}

// find leads to the instance with an id, or to those with a number.
func (v *visit) find() error {
	text := strings.TrimSpace(v.query("q"))
	if id, err := uuid.Parse(text); err == nil {
		return v.seeOther(v.at("instances", id.String()))
	}
	if text == "" {
		return v.seeOther(v.at("instances"))
	}
	found, err := v.numbered(text)
	if err != nil {
		return err
	}
	if len(found) == 1 {
		return v.seeOther(v.at("instances", found[0].ID.String()))
	}
	return v.show("found", "Found", foundPage{text, found})
}

type foundPage struct {
	Text      string
	Instances []wire.Instance
}

// numbered are the instances with a business key, of any workflow that the user may look for it in.
func (v *visit) numbered(key string) (found []wire.Instance, err error) {
	names, err := v.knownWorkflows()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		list, err := get[api.InstancePage](v, "/v1/instances", url.Values{"workflow": {name}, "business_key": {key}})
		if workflow.CodeOf(err) == workflow.InvalidRequest {
			continue // no key of an instance
		}
		if only(err) != nil {
			return nil, err
		}
		found = append(found, list.Instances...)
	}
	return found, nil
}

// knownWorkflows returns the names of the workflows that the user may read, or that the user's grants name.
func (v *visit) knownWorkflows() (names []string, err error) {
	list, err := get[api.WorkflowList](v, "/v1/workflows", nil)
	if only(err) != nil {
		return nil, err
	}
	for _, w := range list.Workflows {
		names = append(names, w.Name)
	}
	for _, g := range v.can.Grants {
		if g.Workflow != "" && !slices.Contains(names, g.Workflow) {
			names = append(names, g.Workflow)
		}
	}
	return names, nil
}
