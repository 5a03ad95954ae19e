package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// submission is the form of a transition.
type submission struct {
	Workflow   string
	Instance   *wire.InstanceView // nil for a creation
	Transition workflow.TransitionDescription
	Fields     []field
	Raw        bool   // the payload is written as JSON
	Text       string // that
	Reason     string // for the audit
	At         string // when it is to be done; "" is now
	Key        string
	Problem    string
	Others     []workflow.FieldError // problems of no field
	Final      bool                  // the problem was the answer for the key
	Dry        *transitions.Result   // what would come of it
	Accepted   bool                  // a dry run says that it would be in flight
	Address    string                // of the form
}

func (v *visit) transitionForm() error {
	page, err := v.submission()
	if err == nil {
		err = needs("submit", v.May("submit", page.Workflow, v.r.PathValue("id"), page.Transition.Name))
	}
	if err != nil {
		return err
	}
	page.Key, page.Raw = uuid.NewString(), v.query("raw") != "" || page.Fields == nil
	page.Text = "{}"
	return v.show("transition", page.title(), page)
}

func (s *submission) title() string { return s.Transition.Name }

// submission is the form that the address names, as it is before anything is entered.
func (v *visit) submission() (*submission, error) {
	page := &submission{Workflow: v.r.PathValue("workflow"), Address: v.r.URL.EscapedPath()}
	q := url.Values{}
	if id := v.r.PathValue("id"); id != "" {
		view, err := get[wire.InstanceView](v, "/v1"+segments("instances", id), nil)
		if err != nil {
			return nil, err
		}
		page.Instance, page.Workflow = &view, view.Workflow
		q.Set("version", strconv.Itoa(view.Definition))
	}
	described, err := get[workflow.Description](v, "/v1"+segments("workflows", page.Workflow), q)
	if err != nil {
		return nil, err
	}
	t, is := page.find(described.Transitions, v.r.PathValue("transition"))
	if !is {
		return nil, workflow.Errorf(workflow.TransitionNotFound, "the workflow %q has no such transition here", page.Workflow)
	}
	page.Transition, page.Fields = t, fieldsOf(t.Payload)
	return page, nil
}

// find is the transition with a name: the one that leaves the state, where there are several.
func (s *submission) find(list []workflow.TransitionDescription, name string) (found workflow.TransitionDescription, is bool) {
	for _, t := range list {
		if t.Name != name || t.Start != (s.Instance == nil) {
			continue
		}
		if found = t; s.Instance != nil && slices.Contains(t.From, s.Instance.State) {
			return t, true
		}
		is = true
	}
	return found, is
}

// transition submits what was entered, or tries it.
func (v *visit) transition() error {
	page, err := v.submission()
	if err != nil {
		return err
	}
	page.Key, page.Reason, page.At = v.form("_key"), v.form("reason"), v.form("at")
	page.Raw = v.r.PostForm.Has("payload") || page.Fields == nil
	payload, good := page.payload(v.r.PostForm)
	if !good {
		return v.render(http.StatusBadRequest, "transition", page.title(), page)
	}
	dry := v.form("do") == "dry"
	a, err := v.submit(page, payload, dry)
	if err != nil {
		return page.refused(v, err)
	}
	if dry {
		return page.tried(v, a)
	}
	return v.done(a)
}

// payload reads the form. It is false where something cannot be sent, and the page says why.
func (s *submission) payload(sent url.Values) (payload jsontext.Value, good bool) {
	if s.Raw {
		s.Text = sent.Get("payload")
		payload = jsontext.Value(strings.TrimSpace(s.Text))
		if good = payload.IsValid(jsontext.AllowDuplicateNames(true)); !good {
			s.Problem = "the payload is not JSON"
		}
	} else {
		take(s.Fields, sent)
		if payload, good = payloadOf(s.Fields); !good {
			s.Problem = "some fields cannot be read"
		}
	}
	if _, err := s.notBefore(); err != nil {
		s.Problem, good = workflow.AsError(err).Message, false
	}
	return payload, good
}

func (s *submission) notBefore() (string, error) {
	if s.At == "" {
		return "", nil
	}
	t, err := momentOf(s.At)
	return t.Format(time.RFC3339Nano), err
}

func (v *visit) submit(page *submission, payload jsontext.Value, dry bool) (*answer, error) {
	path := "/v1" + segments("workflows", page.Workflow, page.Transition.Name)
	if page.Instance != nil {
		path = "/v1" + segments("instances", page.Instance.ID.String(), page.Transition.Name)
	}
	q := url.Values{}
	if dry {
		q.Set("dry_run", "true")
	}
	at, err := page.notBefore()
	if err != nil {
		return nil, err
	}
	return v.ask(http.MethodPost, path, q, payload, "Idempotency-Key", page.Key, "Pawl-Reason", headerOf(page.Reason), "Pawl-Not-Before", at)
}

// refused shows the form again with the problem. After a final answer for the key, another attempt needs a new key.
func (s *submission) refused(v *visit, err error) error {
	e, is := errors.AsType[*workflow.Error](err)
	if !is || e.Code == workflow.Unauthorized {
		return err
	}
	s.Problem, s.Others = e.Message, blame(s.Fields, e.Fields)
	info := e.Code.Info()
	if s.Final = info.Final; s.Final || e.Code == workflow.KeyReused || e.Code == workflow.KeyExpired {
		s.Key = uuid.NewString()
	}
	return v.render(info.Status, "transition", s.title(), s)
}

// tried shows what would come of it.
func (s *submission) tried(v *visit, a *answer) error {
	if a.status == http.StatusAccepted {
		s.Accepted = true
		return v.show("transition", s.title(), s)
	}
	s.Dry = &transitions.Result{}
	if err := a.into(s.Dry); err != nil {
		return err
	}
	return v.show("transition", s.title(), s)
}

// done redirects to the outcome of a command: its transition on the instance's timeline, or its status.
func (v *visit) done(a *answer) error {
	if a.status == http.StatusAccepted {
		var s wire.CommandStatus
		if err := a.into(&s); err != nil {
			return err
		}
		if s.Instance != uuid.Nil {
			return v.seeOther(v.at("instances", s.Instance.String()) + query("done", s.Version))
		}
		return v.seeOther(v.at("commands") + query("scope", s.Scope, "key", s.Key))
	}
	var r transitions.Result
	if err := a.into(&r); err != nil {
		return err
	}
	return v.seeOther(v.at("instances", r.Instance.String()) + query("done", r.Version))
}
