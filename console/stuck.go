package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// stuckPage is the commands that wait for an operator.
type stuckPage struct {
	polled
	Commands []wire.CommandStatus
	Next     string
}

func (v *visit) stuck() error {
	q := v.listed("workflow", "instance", "business_key")
	list, err := get[api.CommandPage](v, "/v1/ops/stuck", q)
	if err != nil {
		return err
	}
	return v.show("stuck", "Stuck commands", stuckPage{Commands: list.Commands, Next: v.nextPage(list.Next)})
}

// listed is the query of a list: the filters that the address has, and its cursor.
func (v *visit) listed(names ...string) url.Values {
	q := url.Values{"limit": {strconv.Itoa(pageOfList)}}
	for _, name := range append(names, "cursor") {
		if value := v.query(name); value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// nextPage is the address of the page after this one.
func (v *visit) nextPage(cursor string) string {
	if cursor == "" {
		return ""
	}
	q := v.r.URL.Query()
	q.Set("cursor", cursor)
	return v.r.URL.Path + "?" + q.Encode()
}

// settlements are what can be done with a command that waits for an operator.
var settlements = map[string]confirm{
	"retry": {Heading: "Try it again", Button: "Try again",
		Says: "The command begins again with all its attempts, with the same effect key: who it calls can tell that it is the same one."},
	"resolve": {Heading: "Say that it has happened", Button: "It has happened", Result: true, Bad: true,
		Says: "The command ends as if its activity had returned this result. " +
			"Do this when you have made sure that the effect has happened outside."},
	"abandon": {Heading: "Give it up", Button: "Give it up", Bad: true,
		Says: "The command ends with a refusal, and the instance goes to the failure state that its activity declares. " +
			"Do this when you have made sure that the effect has not happened outside."},
}

func (v *visit) settleForm() error {
	c, err := choice(settlements, v.r.PathValue("action"))
	if err != nil {
		return err
	}
	status, err := get[wire.CommandStatus](v, "/v1/commands"+segments(v.query("scope"), v.query("key")), nil)
	if err == nil {
		err = needs("operate", v.May("operate", status.Workflow, status.Instance.String(), ""))
	}
	if err != nil {
		return err
	}
	c.Reason, c.Must, c.Runbook, c.Back = true, true, runbook("stuck-key"), v.at("stuck")
	c.Hidden, c.follows = v.carry("scope", "key"), true
	stands := attribute{"Why it waits", status.Stuck}
	if status.Stuck == "" {
		stands = attribute{"How it stands", "It does not wait any more: it is " + string(status.Status)}
	}
	view, err := get[wire.InstanceView](v, "/v1"+segments("instances", status.Instance.String()), nil)
	if only(err) != nil {
		return err
	}
	c.Facts = []attribute{stands, {"What it said last", status.Failure}, {"Transition", status.Workflow + " " + status.Transition},
		{"Number", view.BusinessKey}, {"State", string(view.State)}, {"Scope", status.Scope}, {"Key", status.Key}}
	if status.Instance != uuid.Nil {
		c.Hidden = append(c.Hidden, attribute{"instance", status.Instance.String()})
	}
	return v.confirmation(c)
}

// settle leads to the instance, where the audit row of it is.
func (v *visit) settle() error {
	action := v.r.PathValue("action")
	if _, err := choice(settlements, action); err != nil {
		return err
	}
	if v.form("reason") == "" {
		return workflow.Errorf(workflow.InvalidRequest, "say why: the reason is in the audit for good")
	}
	in := api.Operation{Scope: v.r.PostForm.Get("scope"), Key: v.r.PostForm.Get("key"), Reason: v.form("reason")}
	if action == "resolve" {
		in.Result = jsontext.Value(strings.TrimSpace(v.r.PostForm.Get("result")))
		if !in.Result.IsValid() {
			return workflow.Errorf(workflow.InvalidRequest, "the result is not JSON")
		}
	}
	then := v.at("stuck")
	if id, err := uuid.Parse(v.form("instance")); err == nil {
		then = v.at("instances", id.String())
	}
	return v.send(http.MethodPost, "/v1/ops/commands/"+action, in, then, "Idempotency-Key", v.form("_key"))
}

// commandView is how a command stands.
type commandView struct {
	wire.CommandStatus
	Stoppable bool
	stream    string
}

func (c commandView) live() *Live {
	if c.stream == "" {
		return nil
	}
	return &Live{Streams: []string{c.stream}, Every: 50}
}

func (v *visit) commandPage() error {
	scope, key := v.query("scope"), v.query("key")
	status, err := get[wire.CommandStatus](v, "/v1/commands"+segments(scope, key), nil)
	if err != nil {
		return err
	}
	page := commandView{CommandStatus: status}
	open := status.Code == 0
	page.Stoppable = open && status.Stuck == "" && !strings.HasPrefix(scope, "pawl:") && v.mayStop(&status)
	if open && v.can.Has("stream") {
		page.stream = v.at("live") + "?" + url.Values{"scope": {scope}, "key": {key}}.Encode()
	}
	return v.show("command", "Command", page)
}

// mayStop reports whether the user may stop a command in flight: operators may, and users that may submit it.
func (v *visit) mayStop(s *wire.CommandStatus) bool {
	id := s.Instance.String()
	if !v.May("submit", s.Workflow, id, s.Transition) {
		return false
	}
	if v.May("operate", s.Workflow, id, "") {
		return true
	}
	described, err := get[workflow.Description](v, "/v1"+segments("workflows", s.Workflow), nil)
	return err == nil && slices.ContainsFunc(described.Transitions, func(t workflow.TransitionDescription) bool {
		return t.Name == s.Transition && transitions.HasRole(v.can.Roles, t.Roles...)
	})
}

// cancelCommand asks a command in flight to stop.
func (v *visit) cancelCommand() error {
	scope, key := v.r.PostForm.Get("scope"), v.r.PostForm.Get("key")
	_, err := v.ask(http.MethodDelete, "/v1/commands"+segments(scope, key), nil, nil)
	if e, is := errors.AsType[*workflow.Error](err); is && e.Code != workflow.InProgress {
		return err
	}
	return v.seeOther(v.at("commands") + "?" + url.Values{"scope": {scope}, "key": {key}}.Encode())
}
