package console

import (
	"net/http"
	"path"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// confirm is the page on which the user confirms an operation and gives a reason.
type confirm struct {
	Heading string
	Says    string // what will happen
	Facts   []attribute
	Hidden  []attribute
	Reason  bool // it is asked for
	Must    bool // it is required
	Result  bool // a result is asked for, as JSON
	Number  string
	Button  string
	Bad     bool // it cannot be taken back
	Runbook string
	Back    string // where to go without doing it
	Grant   string // what it takes, where that is not the same for all actions of its kind

	Address, Key, Problem string
	follows               bool // somebody else may have done it before
}

func (c confirm) live() *Live {
	if !c.follows {
		return nil
	}
	return polled{}.live()
}

// confirmation shows the page.
func (v *visit) confirmation(c confirm) error {
	c.Address, c.Key = v.r.URL.EscapedPath(), uuid.NewString()
	return v.show("confirm", c.Heading, c)
}

// needs refuses to offer what the user may not do. Whether it is done is not decided here.
func needs(grant string, has bool) error {
	if has {
		return nil
	}
	return workflow.Errorf(workflow.Forbidden, "this takes the grant %q", grant)
}

// carry is a hidden field for each of these parameters of the address.
func (v *visit) carry(names ...string) (all []attribute) {
	for _, name := range names {
		if value := v.query(name); value != "" {
			all = append(all, attribute{name, value})
		}
	}
	return all
}

// send does what a form asks for, and then leads to where it is to be seen. header is as with ask.
func (v *visit) send(method, path string, body any, then string, header ...string) error {
	if _, err := v.ask(method, path, nil, body, header...); err != nil {
		return err
	}
	return v.seeOther(then)
}

// reasoned is the body of what takes a reason.
type reasoned struct {
	Reason string `json:"reason,omitempty"`
}

func (v *visit) reason() reasoned { return reasoned{v.form("reason")} }

// headerOf is a reason as the header of a command; "" for none.
func headerOf(reason string) string {
	if reason == "" {
		return ""
	}
	return wire.DisplayString(reason)
}

// What a pause is, and its end.
var (
	instancePauses = map[string]confirm{
		"pause": {Heading: "Pause the instance", Button: "Pause",
			Says: "Nothing new is begun on the instance until it is resumed: " + whatPauses},
		"resume": {Heading: "Resume the instance", Button: "Resume", Says: whatResumes},
	}
	workflowPauses = map[string]confirm{
		"pause": {Heading: "Pause the workflow", Button: "Pause", Bad: true,
			Says: "Nothing new is begun on any instance of the workflow in this tenant until it is resumed: " + whatPauses},
		"resume": {Heading: "Resume the workflow", Button: "Resume", Says: whatResumes},
	}
)

const (
	whatPauses  = "commands are refused, timers and commands for later wait. What is in flight goes on to its end."
	whatResumes = "Commands are taken again, and what has become due meanwhile is done now."
)

// pauseForm is for the pause of an instance, and for its end.
func (v *visit) pauseForm() error {
	id, c := v.r.PathValue("id"), instancePauses[v.last()]
	view, err := get[wire.InstanceView](v, "/v1"+segments("instances", id), nil)
	if err == nil {
		err = needs("operate", v.May("operate", view.Workflow, id, ""))
	}
	if err != nil {
		return err
	}
	c.Reason, c.Back, c.Runbook = true, v.at("instances", id), runbook("work-that-does-not-start")
	c.Facts = []attribute{{"Instance", id}, {"Number", view.BusinessKey}, {"Workflow", view.Workflow}, {"State", string(view.State)}}
	return v.confirmation(c)
}

// last is the last part of the path.
func (v *visit) last() string { return path.Base(v.r.URL.Path) }

func (v *visit) pause() error {
	id := v.r.PathValue("id")
	a, err := v.ask(http.MethodPost, "/v1/ops"+segments("instances", id, v.last()), nil, v.reason(), "Idempotency-Key", v.form("_key"))
	if err != nil {
		return err
	}
	return v.done(a)
}

// pauseWorkflowForm is for the pause of a workflow, and for its end, which takes no reason.
func (v *visit) pauseWorkflowForm() error {
	name, c := v.r.PathValue("workflow"), workflowPauses[v.last()]
	if err := needs("operate", v.May("operate", name, "", "")); err != nil {
		return err
	}
	c.Reason, c.Back, c.Runbook = v.last() == "pause", v.at("workflows", name), runbook("work-that-does-not-start")
	c.Facts = []attribute{{"Workflow", name}}
	return v.confirmation(c)
}

func (v *visit) pauseWorkflow() error {
	name := v.r.PathValue("workflow")
	method, body := http.MethodPut, any(v.reason())
	if v.last() == "resume" {
		method, body = http.MethodDelete, nil
	}
	return v.send(method, "/v1/ops"+segments("paused", name), body, v.at("workflows", name))
}

// choice is one of the actions that a path can name. Error: NotFound.
func choice[T any](all map[string]T, name string) (T, error) {
	one, is := all[name]
	if !is {
		return one, workflow.Errorf(workflow.NotFound, "there is no such action")
	}
	return one, nil
}
