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

// maxChosen is how many instances can be chosen at once: as many as a page of a list shows, and then some.
const maxChosen = 100

// bulkPage is one action on several instances.
type bulkPage struct {
	Action     string // pause, resume, or "do" and a blank and a transition
	Transition string // "" for pause and resume
	Payload    string
	Reason     string
	Items      []bulkItem
	Key        string
	Problem    string
	Dry        bool // nothing was written
	Done       bool
	Good       int // of those that were done, or would be
}

// bulkItem is one of the instances, and what came of it.
type bulkItem struct {
	ID      string
	View    *wire.InstanceView // nil for one that there is not
	Status  int                // 0 before anything was tried
	State   workflow.State
	Problem string
}

// bulkForm shows what is chosen, before anything is done.
func (v *visit) bulkForm() error {
	page, err := v.chosen(v.r.URL.Query())
	if err == nil {
		grant := page.grant()
		err = needs(grant, v.Has(grant))
	}
	if err != nil {
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

// grant is what the action takes, of each instance.
func (p *bulkPage) grant() string {
	if p.Transition != "" {
		return "submit"
	}
	return "operate"
}

// chosen are the action and the instances that an address or a form names.
func (v *visit) chosen(from url.Values) (*bulkPage, error) {
	p := &bulkPage{Action: from.Get("action")}
	if name, is := strings.CutPrefix(p.Action, "do "); is {
		p.Transition = name
	} else if p.Action != "pause" && p.Action != "resume" {
		return nil, workflow.Errorf(workflow.InvalidRequest, "choose what is to be done")
	}
	ids := slices.Compact(slices.Sorted(slices.Values(from["id"])))
	if len(ids) == 0 || len(ids) > maxChosen {
		return nil, workflow.Errorf(workflow.InvalidRequest, "choose 1 to %d instances", maxChosen)
	}
	for _, id := range ids {
		item := bulkItem{ID: id}
		view, err := get[wire.InstanceView](v, "/v1"+segments("instances", id), nil)
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

// bulk does it, or tries it. Each instance has a key of its own, so the form that is sent again changes nothing twice.
func (v *visit) bulk() error {
	page, err := v.chosen(v.r.PostForm)
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
		a, err := v.ask(http.MethodPost, "/v1/ops"+segments("instances", item.ID, page.Action), nil, reasoned{page.Reason},
			"Idempotency-Key", page.Key+"-"+strconv.Itoa(n))
		if e, is := errors.AsType[*workflow.Error](err); is {
			if e.Code == workflow.Unauthorized || e.Code == workflow.Forbidden {
				return err
			}
			item.Status, item.Problem = e.Code.Info().Status, e.Message
			continue
		}
		if err := item.read(a.status, a.body.Bytes()); err != nil {
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
	var of []*bulkItem
	for n := range page.Items {
		if item := &page.Items[n]; item.View != nil {
			list, of = append(list, wire.BulkCommand{Transition: page.Transition, Instance: item.ID, Key: page.Key + "-" + strconv.Itoa(n),
				Reason: page.Reason, Payload: payload}), append(of, item)
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
	if err := a.into(&results); err != nil {
		return err
	}
	if len(results) != len(of) {
		return unreadable(fmt.Errorf("%d results of %d commands", len(results), len(of)))
	}
	for n, r := range results {
		if err := of[n].read(r.Status, r.Body); err != nil {
			return err
		}
	}
	return nil
}

// read takes over what came of one of them.
func (i *bulkItem) read(status int, body []byte) error {
	if i.Status = status; status >= 400 {
		var problem transitions.Problem
		err := read(body, &problem)
		i.Problem = problem.Err().Message
		return err
	}
	var said struct {
		State workflow.State `json:"state"` // of what is not in flight
	}
	err := read(body, &said)
	i.State = said.State
	return err
}
