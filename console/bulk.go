package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// maxSelected is the maximum number of selected instances, more than a page of a list has.
const maxSelected = 100

// bulkPage is one action on several instances.
type bulkPage struct {
	Action     string // "pause", "resume", or "do " and a transition
	Transition string // "" for pause and resume
	Payload    string
	Reason     string
	Items      []bulkItem
	Key        string
	Problem    string
	Dry        bool // dry run
	Done       bool
	Good       int // number of successes
}

// bulkItem is one of the instances with its result.
type bulkItem struct {
	ID      string
	View    *wire.InstanceView // nil if it does not exist
	Status  int                // 0 before an attempt
	State   workflow.State
	Problem string
}

// bulkForm shows the selected instances.
func (v *visit) bulkForm() error {
	page, err := v.selected(v.r.URL.Query())
	if err != nil {
		return err
	}
	grant := "operate"
	if page.Transition != "" {
		grant = "submit"
	}
	if err := requireGrant(grant, v.Has(grant)); err != nil {
		return err
	}
	page.Key, page.Payload = uuid.NewString(), "{}"
	return v.show("bulk", page.title(), page)
}

func (p *bulkPage) title() string {
	if p.Transition != "" {
		return p.Transition + ", of several instances"
	}
	return strings.ToUpper(p.Action[:1]) + p.Action[1:] + " several instances"
}

// selected returns the action and the instances in an address or a form.
func (v *visit) selected(from url.Values) (*bulkPage, error) {
	p := &bulkPage{Action: from.Get("action")}
	if name, is := strings.CutPrefix(p.Action, "do "); is {
		p.Transition = name
	} else if p.Action != "pause" && p.Action != "resume" {
		return nil, workflow.Errorf(workflow.InvalidRequest, "choose an action")
	}
	ids := slices.Compact(slices.Sorted(slices.Values(from["id"])))
	if len(ids) == 0 || len(ids) > maxSelected {
		return nil, workflow.Errorf(workflow.InvalidRequest, "choose 1 to %d instances", maxSelected)
	}
	for _, id := range ids {
		item := bulkItem{ID: id}
		view, err := get[wire.InstanceView](v, v1("instances", id), nil)
		switch code := workflow.CodeOf(err); {
		case err == nil:
			item.View = &view
		case code == workflow.InstanceNotFound, code == workflow.InvalidRequest:
			item.Problem = workflow.AsError(err).Message
		default:
			return nil, err
		}
		p.Items = append(p.Items, item)
	}
	return p, nil
}

// bulk performs the action or a dry run. Each instance has its own key, so sending the form again has no further effect.
func (v *visit) bulk() error {
	page, err := v.selected(v.r.PostForm)
	if err != nil {
		return err
	}
	page.Key, page.Reason, page.Payload = v.form("_key"), v.form("reason"), v.r.PostForm.Get("payload")
	page.Dry = v.form("try") != ""
	if page.Transition == "" {
		err = v.bulkPause(page)
	} else {
		err = v.bulkSubmit(page)
	}
	if err != nil {
		return err
	}
	for _, i := range page.Items {
		if i.Status > 0 && i.Status < 400 {
			page.Good++
		}
	}
	page.Done = page.Problem == "" && !page.Dry
	return v.show("bulk", page.title(), page)
}

func (v *visit) bulkPause(page *bulkPage) error {
	for n := range page.Items {
		item := &page.Items[n]
		if item.View == nil {
			continue
		}
		a, err := v.ask(http.MethodPost, v1("ops", "instances", item.ID, page.Action), nil, withReason{page.Reason},
			"Idempotency-Key", page.Key+"-"+strconv.Itoa(n))
		if e, is := errors.AsType[*workflow.Error](err); is {
			if e.Code == workflow.Unauthorized || e.Code == workflow.Forbidden {
				return err
			}
			item.Status, item.Problem = e.Code.Info().Status, e.Message
			continue
		}
		if err := item.setResult(a.status, a.body.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (v *visit) bulkSubmit(page *bulkPage) error {
	payload := jsontext.Value(strings.TrimSpace(page.Payload))
	if !payload.IsValid(jsontext.AllowDuplicateNames(true)) {
		page.Problem = "the payload is not JSON"
		return nil
	}
	var list []wire.BulkCommand
	var items []*bulkItem
	for n := range page.Items {
		if item := &page.Items[n]; item.View != nil {
			items = append(items, item)
			list = append(list, wire.BulkCommand{Transition: page.Transition, Instance: item.ID, Key: page.Key + "-" + strconv.Itoa(n),
				Reason: page.Reason, Payload: payload})
		}
	}
	q := url.Values{}
	if page.Dry {
		q.Set("dry_run", "true")
	}
	a, err := v.ask(http.MethodPost, "/v1/commands", q, list)
	if err != nil {
		return err
	}
	var results []wire.BulkResult
	if err := decode(a.body.Bytes(), &results); err != nil {
		return err
	}
	if len(results) != len(items) {
		return unreadable(fmt.Errorf("%d results for %d commands", len(results), len(items)))
	}
	for n, r := range results {
		if err := items[n].setResult(r.Status, r.Body); err != nil {
			return err
		}
	}
	return nil
}

// setResult sets the result of a command.
func (i *bulkItem) setResult(status int, body []byte) error {
	if i.Status = status; status >= 400 {
		var problem transitions.Problem
		err := decode(body, &problem)
		i.Problem = problem.Err().Message
		return err
	}
	var result struct {
		State workflow.State `json:"state"` // "" in flight
	}
	err := decode(body, &result)
	i.State = result.State
	return err
}
