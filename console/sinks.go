package console

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// waiting is the status of what waits for an operator. The API lists that where none is named.
const waiting = "waiting"

// sinkList is the sinks, and how they stand.
type sinkList struct {
	polled
	api.SinkList
}

func (v *visit) sinks() error {
	list, err := get[api.SinkList](v, "/v1/ops/sinks", nil)
	if err != nil {
		return err
	}
	return v.show("sinks", "Sinks", sinkList{SinkList: list})
}

// sinkPage is one sink, with its dead letters.
type sinkPage struct {
	polled
	api.SinkPage
	Dead   []inspect.DeadLetter
	Status string
	Next   string
}

func (v *visit) sink() error {
	name := v.r.PathValue("sink")
	page := sinkPage{Status: cmp.Or(v.query("status"), waiting)}
	var err error
	if page.SinkPage, err = get[api.SinkPage](v, "/v1/ops"+segments("sinks", name), nil); err != nil {
		return err
	}
	dead, err := get[api.DeadPage](v, "/v1/ops"+segments("sinks", name, "dead"), v.listed("status", "workflow", "type", "instance"))
	if err != nil {
		return err
	}
	page.Dead, page.Next = dead.Dead, v.nextPage(dead.Next)
	return v.show("sink", name, page)
}

// sinkChanges are what can be done with a sink, or with its dead letters.
var sinkChanges = map[string]confirm{
	"redrive": {Grant: "operate", Heading: "Deliver dead letters again", Button: "Deliver again", Runbook: runbook("dead-letters"),
		Says: "They are delivered again, each with the id that it had, so a receiver that has it already can tell."},
	"skip": {Grant: "operate", Heading: "Skip dead letters", Button: "Skip", Bad: true, Must: true, Runbook: runbook("dead-letters"),
		Says: "They are never delivered. They can still be read in the log."},
	"move": {Grant: "operate", Heading: "Move the cursor", Button: "Move", Bad: true, Must: true, Runbook: runbook("growing-lag"),
		Number: "Position of the last event that counts as delivered",
		Says:   "The sink goes on after this position of the log of your tenant: back to deliver events again, forward to leave some out."},
	"pause": {Grant: "operate:all", Heading: "Pause the sink", Button: "Pause", Bad: true, Runbook: runbook("growing-lag"),
		Says: "Nothing is delivered to the sink, of any tenant, until it is resumed. What happens meanwhile is delivered then."},
	"resume": {Grant: "operate:all", Heading: "Resume the sink", Button: "Resume", Runbook: runbook("growing-lag"),
		Says: "The sink goes on where it was."},
	"forget": {Grant: "operate:all", Heading: "Give the sink up", Button: "Give it up", Bad: true, Runbook: runbook("growing-lag"),
		Says: "The sink's cursors and dead letters of every tenant are removed, and the log is not kept for it any more. " +
			"This is for a sink that no node has any more."},
}

func (v *visit) sinkForm() error {
	name := v.r.PathValue("sink")
	c, err := choice(sinkChanges, v.r.PathValue("action"))
	if err == nil {
		err = needs(c.Grant, v.Has(c.Grant))
	}
	if err != nil {
		return err
	}
	c.Reason, c.Back = true, v.at("sinks", name)
	c.Hidden = v.carry("position", "status")
	c.Facts = append([]attribute{{"Sink", name}}, c.Hidden...)
	if c.Number != "" {
		c.Hidden = nil
	} else if v.query("position") == "" && (v.r.PathValue("action") == "redrive" || v.r.PathValue("action") == "skip") {
		c.Facts = append(c.Facts, attribute{"Which", "all that wait"})
	}
	return v.confirmation(c)
}

func (v *visit) changeSink() error {
	name, action := v.r.PathValue("sink"), v.r.PathValue("action")
	c, err := choice(sinkChanges, action)
	if err != nil {
		return err
	}
	if c.Must && v.form("reason") == "" {
		return workflow.Errorf(workflow.InvalidRequest, "say why")
	}
	path, then := "/v1/ops"+segments("sinks", name, action), v.at("sinks", name)
	var position *int64
	if text := v.form("position"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return workflow.Errorf(workflow.InvalidRequest, "the position is not an integer")
		}
		position = &n
	}
	switch action {
	case "move":
		return v.send(http.MethodPost, path, api.SinkMove{Position: position, Reason: v.form("reason")}, then)
	case "redrive", "skip":
		return v.send(http.MethodPost, path, api.DeadSelection{All: position == nil, Position: position, Reason: v.form("reason")}, then)
	case "forget":
		then = v.at("sinks")
	}
	return v.send(http.MethodPost, path, v.reason(), then)
}
