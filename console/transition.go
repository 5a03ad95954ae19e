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
	Instance   *wire.InstanceView // nil for a new one
	Transition workflow.TransitionDescription
	Fields     []field
	Raw        bool // the payload is entered as JSON, in Text
	Text       string
	Reason     string
	At         string // when to execute it; "" means now
	Key        string
	Problem    string
	Others     []workflow.FieldError // problems without a field
	Final      bool                  // the problem is the final result of the key
	Dry        *transitions.Result   // result of a dry run
	Accepted   bool                  // in a dry run: it would be in flight
	Address    string                // of the form
}

func (v *visit) transitionForm() error {
	page, err := v.submission()
	if err == nil {
		err = requireGrant("submit", v.May("submit", page.Workflow, v.r.PathValue("id"), page.Transition.Name))
	}
	if err != nil {
		return err
	}
	page.Key, page.Raw = uuid.NewString(), v.Query("raw") != "" || page.Fields == nil
	page.Text = "{}"
	return page.show(v, http.StatusOK)
}

func (s *submission) show(v *visit, status int) error {
	return v.render(status, "transition", s.Transition.Name, s)
}

// submission returns the empty form for the transition in the address.
func (v *visit) submission() (*submission, error) {
	page := &submission{Workflow: v.r.PathValue("workflow"), Address: v.r.URL.EscapedPath()}
	q := url.Values{}
	if id := v.r.PathValue("id"); id != "" {
		view, err := get[wire.InstanceView](v, v1("instances", id), nil)
		if err != nil {
			return nil, err
		}
		page.Instance, page.Workflow = &view, view.Workflow
		q.Set("version", strconv.Itoa(view.Definition))
	}
	described, err := get[workflow.Description](v, v1("workflows", page.Workflow), q)
	if err != nil {
		return nil, err
	}
	t, is := page.find(described.Transitions, v.r.PathValue("transition"))
	if !is {
		return nil, workflow.Errorf(workflow.TransitionNotFound, "the workflow %q has no such transition", page.Workflow)
	}
	page.Transition, page.Fields = t, fieldsOf(t.Payload)
	return page, nil
}

// find returns the transition with a name, preferably the one that leaves the state.
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

// transition submits the command or performs a dry run.
func (v *visit) transition() error {
	page, err := v.submission()
	if err != nil {
		return err
	}
	page.Key, page.Reason, page.At = v.form("_key"), v.form("reason"), v.form("at")
	page.Raw = v.r.PostForm.Has("payload") || page.Fields == nil
	payload, good := page.payload(v.r.PostForm)
	if !good {
		return page.show(v, http.StatusBadRequest)
	}
	dry := v.form("do") == "dry"
	a, err := v.submit(page, payload, dry)
	if err != nil {
		// Show the form again with the problem. After a final result another attempt needs a new key.
		e, is := errors.AsType[*workflow.Error](err)
		if !is || e.Code == workflow.Unauthorized {
			return err
		}
		page.Problem, page.Others = e.Message, blame(page.Fields, e.Fields)
		info := e.Code.Info()
		if page.Final = info.Final; page.Final || e.Code == workflow.KeyReused || e.Code == workflow.KeyExpired {
			page.Key = uuid.NewString()
		}
		return page.show(v, info.Status)
	}
	if dry {
		// Show the result of a dry run.
		if page.Accepted = a.status == http.StatusAccepted; !page.Accepted {
			page.Dry = &transitions.Result{}
			if err := decode(a.body.Bytes(), page.Dry); err != nil {
				return err
			}
		}
		return page.show(v, http.StatusOK)
	}
	return v.done(a)
}

// payload returns the payload in the form. It returns false if that is invalid; the page then has the problem.
func (s *submission) payload(sent url.Values) (payload jsontext.Value, good bool) {
	if s.Raw {
		s.Text = sent.Get("payload")
		payload = jsontext.Value(strings.TrimSpace(s.Text))
		if good = payload.IsValid(jsontext.AllowDuplicateNames(true)); !good {
			s.Problem = "the payload is not JSON"
		}
	} else {
		if payload, good = payloadOf(s.Fields, sent); !good {
			s.Problem = "some fields are invalid"
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
	t, err := parseTime(s.At)
	return t.Format(time.RFC3339Nano), err
}

func (v *visit) submit(page *submission, payload jsontext.Value, dry bool) (*answer, error) {
	path := v1("workflows", page.Workflow, page.Transition.Name)
	if page.Instance != nil {
		path = v1("instances", page.Instance.ID.String(), page.Transition.Name)
	}
	q := url.Values{}
	if dry {
		q.Set("dry_run", "true")
	}
	at, err := page.notBefore()
	if err != nil {
		return nil, err
	}
	reason := ""
	if page.Reason != "" {
		reason = wire.DisplayString(page.Reason)
	}
	return v.ask(http.MethodPost, path, q, payload, "Idempotency-Key", page.Key, "Pawl-Reason", reason, "Pawl-Not-Before", at)
}

// done redirects to the result of a command: its transition on the instance's timeline, or its status.
func (v *visit) done(a *answer) error {
	if a.status == http.StatusAccepted {
		var s wire.CommandStatus
		if err := decode(a.body.Bytes(), &s); err != nil {
			return err
		}
		if s.Instance != uuid.Nil {
			return v.seeOther(v.At("instances", s.Instance.String()) + query("done", s.Version))
		}
		return v.seeOther(v.At("commands") + query("scope", s.Scope, "key", s.Key))
	}
	var r transitions.Result
	if err := decode(a.body.Bytes(), &r); err != nil {
		return err
	}
	return v.seeOther(v.At("instances", r.Instance.String()) + query("done", r.Version))
}
