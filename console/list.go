package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// pageSize is the number of rows on a page of a list.
const pageSize = 50

// listing returns the handler of a page that shows a list of the API. params are the query parameters that it passes on; "cursor" is one
// of those of a list with pages.
func listing[T any](name, title, path string, params ...string) handler {
	return func(v *visit) error {
		list, err := get[T](v, path, v.params(params...))
		if err != nil {
			return err
		}
		v.Updates = polling
		return v.show(name, title, list)
	}
}

// params returns these parameters of the address, without empty ones. A "cursor" adds the size of a page.
func (v *visit) params(names ...string) url.Values {
	q := url.Values{}
	for _, name := range names {
		if value := v.Query(name); value != "" {
			q.Set(name, value)
		}
		if name == "cursor" {
			q.Set("limit", strconv.Itoa(pageSize))
		}
	}
	return q
}

// Next returns the address of the page with a cursor; "" for none.
func (v *visit) Next(cursor string) string {
	if cursor == "" {
		return ""
	}
	return v.addressWith("cursor", cursor)
}

// addressWith returns the address of this page with another value of a parameter; "" removes it.
func (v *visit) addressWith(name, value string) string {
	q := v.r.URL.Query()
	q.Del(name)
	if value != "" {
		q.Set(name, value)
	}
	return v.r.URL.Path + "?" + q.Encode()
}

// WorkflowNames returns the names of the workflows that the user may list; nil without that right.
func (v *visit) WorkflowNames() (names []string, err error) {
	list, err := get[wire.WorkflowList](v, "/v1/workflows", nil)
	for _, w := range list.Workflows {
		names = append(names, w.Name)
	}
	return names, ifVisible(err)
}

// instanceList is the page of the instances that the address selects.
type instanceList struct {
	wire.InstancePage
	States     []workflow.State // to choose from, as are the transitions in Actions
	Actions    []string
	Attributes []attribute // of the workflow, with their selected values
	Problem    string
}

type attribute struct{ Name, Value string }

// timeBounds are the parameters that are times. A browser sends them without a time zone.
var timeBounds = []string{"created_after", "created_before", "updated_after", "updated_before"}

func (v *visit) instances() error {
	var page instanceList
	if err := ifVisible(v.choices(&page)); err != nil {
		return err
	}
	status := http.StatusOK
	q, err := v.instanceQuery(&page)
	if err == nil {
		page.InstancePage, err = get[wire.InstancePage](v, "/v1/instances", q)
	}
	if err != nil {
		info := workflow.CodeOf(err).Info()
		if info.Status >= 500 || info.Status == http.StatusUnauthorized {
			return err
		}
		page.Problem, status = workflow.AsError(err).Message, info.Status
	} else if v.Query("cursor") == "" {
		v.followList()
	}
	return v.render(status, "instances", "Instances", page)
}

// followList updates the list with the events of its workflow, if the user may read them.
func (v *visit) followList() {
	filter := v.params("workflow")
	if filter.Has("workflow") {
		filter = v.params("workflow", "business_key")
	}
	if head, err := v.head(filter); err == nil && v.can.Has("stream") {
		v.Updates = &Updates{Streams: []string{v.stream("after", head, "workflow", filter.Get("workflow"), "business_key", filter.Get("business_key"))},
			Every: 150}
	}
}

// choices sets the states, transitions and attributes to choose from: those of the workflow, otherwise the states of all.
func (v *visit) choices(page *instanceList) error {
	name := v.Query("workflow")
	if name == "" {
		list, err := get[wire.WorkflowList](v, "/v1/workflows", nil)
		for _, w := range list.Workflows {
			page.States = append(page.States, w.States...)
		}
		slices.Sort(page.States)
		page.States = slices.Compact(page.States)
		return err
	}
	described, err := get[workflow.Description](v, v1("workflows", name), nil)
	if err != nil {
		return nil // the list reports it
	}
	for _, s := range described.States {
		page.States = append(page.States, s.Name)
	}
	for _, t := range described.Transitions {
		if !t.Start && !t.Internal && !t.Auto && !slices.Contains(page.Actions, t.Name) && v.May("submit", name, "", t.Name) {
			page.Actions = append(page.Actions, t.Name)
		}
	}
	for _, name := range described.Attributes {
		page.Attributes = append(page.Attributes, attribute{name, v.Query("attr." + name)})
	}
	return nil
}

// instanceQuery returns the query for the API. Error: InvalidRequest.
func (v *visit) instanceQuery(page *instanceList) (url.Values, error) {
	q := v.params("workflow", "state", "open", "business_key", "order", "definition", "cursor")
	for _, a := range page.Attributes {
		if a.Value != "" {
			q.Set("attr."+a.Name, a.Value)
		}
	}
	for _, name := range timeBounds {
		if text := v.Query(name); text != "" {
			t, err := parseTime(text)
			if err != nil {
				return nil, err
			}
			q.Set(name, t.Format(time.RFC3339Nano))
		}
	}
	return q, nil
}

// parseTime parses a time from a form field or of the API. Without a time zone it is UTC.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, workflow.Errorf(workflow.InvalidRequest, "%q is not a time such as 2026-01-31T12:00", short(text, 40))
}

// foundPage is the page of several instances with one business key.
type foundPage struct {
	Text      string
	Instances []wire.Instance
}

// find redirects to the instance with an id or a unique business key.
func (v *visit) find() error {
	text := strings.TrimSpace(v.Query("q"))
	if id, err := uuid.Parse(text); err == nil {
		return v.seeOther(v.At("instances", id.String()))
	}
	if text == "" {
		return v.seeOther(v.At("instances"))
	}
	names, err := v.WorkflowNames()
	if err != nil {
		return err
	}
	for _, g := range v.can.Grants {
		if g.Workflow != "" && !slices.Contains(names, g.Workflow) {
			names = append(names, g.Workflow)
		}
	}
	page := foundPage{Text: text}
	for _, name := range names {
		list, err := get[wire.InstancePage](v, "/v1/instances", url.Values{"workflow": {name}, "business_key": {text}})
		if workflow.CodeOf(err) == workflow.InvalidRequest {
			continue // not a valid business key
		}
		if ifVisible(err) != nil {
			return err
		}
		page.Instances = append(page.Instances, list.Instances...)
	}
	if len(page.Instances) == 1 {
		return v.seeOther(v.At("instances", page.Instances[0].ID.String()))
	}
	return v.show("found", "Found", page)
}
