package console

import (
	"net/http"
	"strconv"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/workflow"
)

// sinkPage is one sink with its dead letters.
type sinkPage struct {
	api.SinkPage
	Dead api.DeadPage
}

func (v *visit) sink() (err error) {
	name := v.r.PathValue("sink")
	var page sinkPage
	if page.SinkPage, err = get[api.SinkPage](v, v1("ops", "sinks", name), nil); err != nil {
		return err
	}
	page.Dead, err = get[api.DeadPage](v, v1("ops", "sinks", name, "dead"), v.params("status", "workflow", "type", "instance", "cursor"))
	if err != nil {
		return err
	}
	v.Updates = polling
	return v.show("sink", name, page)
}

// sinkChanges are the operations on a sink and on its dead letters.
var sinkChanges = operations{
	"redrive": {Grant: "operate", Heading: "Deliver dead letters again", Button: "Deliver again", Reason: true, Runbook: "dead-letters",
		Says: "They are delivered again with their ids, so a receiver that already has one can recognize it."},
	"skip": {Grant: "operate", Heading: "Skip dead letters", Button: "Skip", Bad: true, Reason: true, Must: true, Runbook: "dead-letters",
		Says: "They are never delivered. The log still contains them."},
	"move": {Grant: "operate", Heading: "Move the cursor", Button: "Move", Bad: true, Reason: true, Must: true, Runbook: "growing-lag",
		Number: "Position of the last event that counts as delivered",
		Says:   "The sink continues after this position in the log of your tenant: move back to repeat events, forward to omit some."},
	"pause": {Grant: "operate:all", Heading: "Pause the sink", Button: "Pause", Bad: true, Reason: true, Runbook: "growing-lag",
		Says: "Nothing is delivered to the sink, for any tenant, until it is resumed. Events in the meantime are delivered then."},
	"resume": {Grant: "operate:all", Heading: "Resume the sink", Button: "Resume", Reason: true, Runbook: "growing-lag",
		Says: "The sink continues where it stopped."},
	"forget": {Grant: "operate:all", Heading: "Remove the sink", Button: "Remove", Bad: true, Reason: true, Runbook: "growing-lag",
		Says: "The sink's cursors and dead letters of all tenants are removed, and the log is no longer kept for it. " +
			"Use this for a sink that no node has any more."},
}

func (v *visit) sinkForm() error {
	c, action, err := v.operation(sinkChanges)
	if err != nil {
		return err
	}
	name := v.r.PathValue("sink")
	c.Back, c.Hidden = v.At("sinks", name), v.hidden("position", "status")
	c.Facts = append([]attribute{{"Sink", name}}, c.Hidden...)
	if c.Number != "" {
		c.Hidden = nil
	} else if v.Query("position") == "" && (action == "redrive" || action == "skip") {
		c.Facts = append(c.Facts, attribute{"Which", "all that wait"})
	}
	return v.confirmation(c)
}

func (v *visit) changeSink() error {
	_, action, err := v.operation(sinkChanges)
	if err != nil {
		return err
	}
	var position *int64
	if text := v.form("position"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return workflow.Errorf(workflow.InvalidRequest, "the position is not an integer")
		}
		position = &n
	}
	name, body := v.r.PathValue("sink"), any(v.reason())
	then := v.At("sinks", name)
	switch action {
	case "move":
		body = api.SinkMove{Position: position, Reason: v.form("reason")}
	case "redrive", "skip":
		body = api.DeadSelection{All: position == nil, Position: position, Reason: v.form("reason")}
	case "forget":
		then = v.At("sinks")
	}
	return v.send(http.MethodPost, v1("ops", "sinks", name, action), body, then)
}
