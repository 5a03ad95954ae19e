package console

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/workflow"
)

// messageList is the messages that were not consumed.
type messageList struct {
	polled
	Status   string
	Messages []api.DeadMessage
	Next     string
}

func (v *visit) messages() error {
	list, err := get[api.DeadMessagePage](v, "/v1/ops/inbox", v.listed("consumer", "status", "workflow", "business_key"))
	if err != nil {
		return err
	}
	return v.show("messages", "Dead messages", messageList{Status: cmp.Or(v.query("status"), waiting), Messages: list.Messages,
		Next: v.nextPage(list.Next)})
}

// messageBody is a message as it was sent, which no browser shall take for a page.
func (v *visit) messageBody() error {
	v.w.Header().Set("Content-Disposition", `attachment; filename="message"`)
	q := url.Values{"consumer": {v.query("consumer")}, "message": {v.query("message")}, "hash": {v.query("hash")}}
	return v.pass("/v1/ops/inbox/body", q)
}

var messageChanges = map[string]confirm{
	"retry": {Heading: "Consume the message again", Button: "Consume again",
		Says: "The message is consumed as if it had just come, and has its one effect. A refusal that was given before is withdrawn."},
	"discard": {Heading: "Discard the message", Button: "Discard", Bad: true, Must: true,
		Says: "The message is never consumed, and its sender is refused from now on."},
}

func (v *visit) messageForm() error {
	c, err := choice(messageChanges, v.r.PathValue("action"))
	if err == nil {
		err = needs("operate", v.Has("operate"))
	}
	if err != nil {
		return err
	}
	c.Reason, c.Runbook, c.Back = true, runbook("poisoned-message"), v.at("messages")
	c.Hidden = v.carry("consumer", "message", "hash")
	c.Facts = c.Hidden
	return v.confirmation(c)
}

func (v *visit) changeMessage() error {
	action := v.r.PathValue("action")
	c, err := choice(messageChanges, action)
	if err != nil {
		return err
	}
	if c.Must && v.form("reason") == "" {
		return workflow.Errorf(workflow.InvalidRequest, "say why")
	}
	in := api.MessageOperation{Consumer: v.r.PostForm.Get("consumer"), Message: v.r.PostForm.Get("message"), Hash: v.r.PostForm.Get("hash"),
		Reason: v.form("reason")}
	return v.send(http.MethodPost, "/v1/ops/inbox/"+action, in, v.at("messages"))
}
