package console

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// confirm is the page on which the user confirms an operation.
type confirm struct {
	Heading, Button string
	Says            string // the consequences
	Bad             bool   // it cannot be undone
	Reason, Must    bool   // it has a reason, which is required
	Result          bool   // it has a result, as JSON
	Number          string // label of its position; "" for none
	Runbook         string // anchor
	Grant           string // grant for any target; "" if the form checks it

	Facts, Hidden []attribute
	Back          string // address of the page without the operation
	Address, Key  string
}

// operations maps the names of operations, the last part of a path, to their pages.
type operations map[string]confirm

// operation returns the operation in the path and its name, and checks what does not depend on its target. Errors: NotFound, Forbidden,
// InvalidRequest for a missing reason.
func (v *visit) operation(all operations) (c confirm, name string, err error) {
	name = v.r.PathValue("action")
	c, ok := all[name]
	switch {
	case !ok:
		err = workflow.Errorf(workflow.NotFound, "there is no such action")
	case v.r.Method == http.MethodGet && c.Grant != "":
		err = requireGrant(c.Grant, v.Has(c.Grant))
	case v.r.Method == http.MethodPost && c.Must && v.form("reason") == "":
		err = errNoReason
	}
	return c, name, err
}

var errNoReason = workflow.Errorf(workflow.InvalidRequest, "a reason is required; the audit log keeps it")

// requireGrant rejects a form for an operation that the user may not perform. The API decides when the form is sent.
func requireGrant(grant string, has bool) error {
	if has {
		return nil
	}
	return workflow.Errorf(workflow.Forbidden, "this takes the grant %q", grant)
}

// confirmation shows the page.
func (v *visit) confirmation(c confirm) error {
	c.Address, c.Key = v.r.URL.EscapedPath(), uuid.NewString()
	return v.show("confirm", c.Heading, c)
}

// hidden returns a hidden field for each of these parameters of the address.
func (v *visit) hidden(names ...string) (all []attribute) {
	for _, name := range names {
		if value := v.Query(name); value != "" {
			all = append(all, attribute{name, value})
		}
	}
	return all
}

// send performs an operation and redirects to a page that shows its effect. The header is that of ask.
func (v *visit) send(method, path string, body any, then string, header ...string) error {
	if _, err := v.ask(method, path, nil, body, header...); err != nil {
		return err
	}
	return v.seeOther(then)
}

// withReason is the body of an operation that only has a reason.
type withReason struct {
	Reason string `json:"reason,omitempty"`
}

func (v *visit) reason() withReason { return withReason{v.form("reason")} }

const (
	pauseEffect = "Commands are refused, and timers and scheduled commands wait. Commands in flight continue to their end."
	resumed     = "Commands are accepted again, and whatever became due in the meantime is executed now."
)

var (
	instancePauses = operations{
		"pause":  {Heading: "Pause the instance", Button: "Pause", Says: pauseEffect, Reason: true, Runbook: "work-that-does-not-start"},
		"resume": {Heading: "Resume the instance", Button: "Resume", Says: resumed, Reason: true, Runbook: "work-that-does-not-start"},
	}
	workflowPauses = operations{
		"pause": {Heading: "Pause the workflow", Button: "Pause", Bad: true, Reason: true, Runbook: "work-that-does-not-start",
			Says: "This affects all instances of the workflow in this tenant. " + pauseEffect},
		"resume": {Heading: "Resume the workflow", Button: "Resume", Says: resumed, Runbook: "work-that-does-not-start"},
	}
)

func (v *visit) pauseForm() error {
	c, _, err := v.operation(instancePauses)
	if err != nil {
		return err
	}
	id := v.r.PathValue("id")
	view, err := get[wire.InstanceView](v, v1("instances", id), nil)
	if err == nil {
		err = requireGrant("operate", v.May("operate", view.Workflow, id, ""))
	}
	if err != nil {
		return err
	}
	c.Back = v.At("instances", id)
	c.Facts = []attribute{{"Instance", id}, {"Number", view.BusinessKey}, {"Workflow", view.Workflow}, {"State", string(view.State)}}
	return v.confirmation(c)
}

func (v *visit) pause() error {
	_, name, err := v.operation(instancePauses)
	if err != nil {
		return err
	}
	a, err := v.ask(http.MethodPost, v1("ops", "instances", v.r.PathValue("id"), name), nil, v.reason(), "Idempotency-Key", v.form("_key"))
	if err != nil {
		return err
	}
	return v.done(a)
}

func (v *visit) pauseWorkflowForm() error {
	name := v.r.PathValue("workflow")
	c, _, err := v.operation(workflowPauses)
	if err == nil {
		err = requireGrant("operate", v.May("operate", name, "", ""))
	}
	if err != nil {
		return err
	}
	c.Back, c.Facts = v.At("workflows", name), []attribute{{"Workflow", name}}
	return v.confirmation(c)
}

func (v *visit) pauseWorkflow() error {
	_, name, err := v.operation(workflowPauses)
	if err != nil {
		return err
	}
	method, body := http.MethodPut, any(v.reason())
	if name == "resume" {
		method, body = http.MethodDelete, nil
	}
	flow := v.r.PathValue("workflow")
	return v.send(method, v1("ops", "paused", flow), body, v.At("workflows", flow))
}

var messageChanges = operations{
	"retry": {Heading: "Consume the message again", Button: "Consume again", Reason: true, Runbook: "poisoned-message", Grant: "operate",
		Says: "The message is consumed as if it had just arrived, and takes effect once. An earlier refusal is withdrawn."},
	"discard": {Heading: "Discard the message", Button: "Discard", Bad: true, Reason: true, Must: true, Runbook: "poisoned-message",
		Grant: "operate", Says: "The message is never consumed, and its sender is refused from now on."},
}

func (v *visit) messageForm() error {
	c, _, err := v.operation(messageChanges)
	if err != nil {
		return err
	}
	c.Back, c.Hidden = v.At("messages"), v.hidden("consumer", "message", "hash")
	c.Facts = c.Hidden
	return v.confirmation(c)
}

func (v *visit) changeMessage() error {
	_, name, err := v.operation(messageChanges)
	if err != nil {
		return err
	}
	sent := v.r.PostForm
	in := api.MessageOperation{Consumer: sent.Get("consumer"), Message: sent.Get("message"), Hash: sent.Get("hash"), Reason: v.form("reason")}
	return v.send(http.MethodPost, v1("ops", "inbox", name), in, v.At("messages"))
}

// messageBody returns a message as it was sent. Browsers save it instead of rendering it.
func (v *visit) messageBody() error {
	v.w.Header().Set("Content-Disposition", `attachment; filename="message"`)
	return v.proxy(v1("ops", "inbox", "body"), v.params("consumer", "message", "hash"))
}
