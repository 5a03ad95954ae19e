package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

var commandList = listing[api.CommandPage]("commands", "Commands", "/v1/ops/commands", "status", "workflow", "actor", "proof", "cursor")

// commands is the list, or the command that the address names.
func (v *visit) commands() error {
	if v.Query("scope") != "" || v.Query("key") != "" {
		scope, key := v.Query("scope"), v.Query("key")
		status, err := get[wire.CommandStatus](v, v1("commands", scope, key), nil)
		if err != nil {
			return err
		}
		open := status.Code == 0
		if open && v.can.Has("stream") {
			v.Updates = &Updates{Streams: []string{v.stream("scope", scope, "key", key)}, Every: 50}
		}
		stoppable := open && status.Stuck == "" && !strings.HasPrefix(scope, "pawl:") && v.mayCancel(&status)
		return v.show("command", "Command", commandPage{status, stoppable})
	}
	return commandList(v)
}

// commandPage is the status of a command.
type commandPage struct {
	wire.CommandStatus
	Stoppable bool
}

// mayCancel reports whether the user may cancel a command in flight: operators may, and users who may submit it.
func (v *visit) mayCancel(s *wire.CommandStatus) bool {
	id := s.Instance.String()
	if !v.May("submit", s.Workflow, id, s.Transition) {
		return false
	}
	if v.May("operate", s.Workflow, id, "") {
		return true
	}
	described, err := get[workflow.Description](v, v1("workflows", s.Workflow), nil)
	return err == nil && slices.ContainsFunc(described.Transitions, func(t workflow.TransitionDescription) bool {
		return t.Name == s.Transition && transitions.HasRole(v.can.Roles, t.Roles...)
	})
}

// cancelCommand requests the cancellation of a command in flight.
func (v *visit) cancelCommand() error {
	scope, key := v.r.PostForm.Get("scope"), v.r.PostForm.Get("key")
	_, err := v.ask(http.MethodDelete, v1("commands", scope, key), nil, nil)
	if e, is := errors.AsType[*workflow.Error](err); is && e.Code != workflow.InProgress {
		return err
	}
	return v.seeOther(v.At("commands") + query("scope", scope, "key", key))
}

// settlements are the operations on a stuck command.
var settlements = operations{
	"retry": {Heading: "Try it again", Button: "Try again", Reason: true, Must: true, Runbook: "stuck-key",
		Says: "The command starts again with all its attempts and the same effect key, by which the called service can recognize it."},
	"resolve": {Heading: "Confirm the effect", Button: "It has happened", Result: true, Bad: true, Reason: true, Must: true,
		Runbook: "stuck-key",
		Says: "The command completes as if its activity had returned this result. " +
			"First make sure that the effect has happened outside."},
	"abandon": {Heading: "Abandon the command", Button: "Abandon", Bad: true, Reason: true, Must: true, Runbook: "stuck-key",
		Says: "The command is refused, and the instance goes to the failure state that its activity declares. " +
			"First make sure that the effect has not happened outside."},
}

func (v *visit) settleForm() error {
	c, _, err := v.operation(settlements)
	if err != nil {
		return err
	}
	s, err := get[wire.CommandStatus](v, v1("commands", v.Query("scope"), v.Query("key")), nil)
	if err == nil {
		err = requireGrant("operate", v.May("operate", s.Workflow, s.Instance.String(), ""))
	}
	if err != nil {
		return err
	}
	view, err := get[wire.InstanceView](v, v1("instances", s.Instance.String()), nil)
	if ifVisible(err) != nil {
		return err
	}
	state := attribute{"Why it waits", s.Stuck}
	if s.Stuck == "" {
		state = attribute{"Status", "It does not wait any more: it is " + string(s.Status)}
	}
	c.Back, c.Hidden = v.At("stuck"), v.hidden("scope", "key")
	c.Facts = []attribute{state, {"Last failure", s.Failure}, {"Transition", s.Workflow + " " + s.Transition},
		{"Number", view.BusinessKey}, {"State", string(view.State)}, {"Scope", s.Scope}, {"Key", s.Key}}
	if s.Instance != uuid.Nil {
		c.Hidden = append(c.Hidden, attribute{"instance", s.Instance.String()})
	}
	v.Updates = polling // another operator may settle it first
	return v.confirmation(c)
}

// settle redirects to the instance, which shows the audit row.
func (v *visit) settle() error {
	_, action, err := v.operation(settlements)
	if err != nil {
		return err
	}
	in := api.Operation{Scope: v.r.PostForm.Get("scope"), Key: v.r.PostForm.Get("key"), Reason: v.form("reason")}
	if action == "resolve" {
		in.Result = jsontext.Value(strings.TrimSpace(v.r.PostForm.Get("result")))
		if !in.Result.IsValid() {
			return workflow.Errorf(workflow.InvalidRequest, "the result is not JSON")
		}
	}
	then := v.At("stuck")
	if id, err := uuid.Parse(v.form("instance")); err == nil {
		then = v.At("instances", id.String())
	}
	return v.send(http.MethodPost, v1("ops", "commands", action), in, then, "Idempotency-Key", v.form("_key"))
}
