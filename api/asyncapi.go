package api

import (
	"cmp"
	"math"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlhq/pawl/api/internal/contract"
	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/schemagen"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// jsonObject is a JSON object of an AsyncAPI document.
type jsonObject = map[string]any

// streamMessage is a message that is sent or received, by the name that it has on the wire: "op" on a WebSocket, "event" of
// a server-sent event.
type streamMessage struct {
	name string
	typ  reflect.Type
	doc  string
}

func messageOf[T any](name, doc string) streamMessage {
	return streamMessage{name, reflect.TypeFor[T](), doc}
}

var (
	fromClients = []streamMessage{
		messageOf[wire.SubscribeMessage](stream.Subscribe, "follow the log"), messageOf[wire.WatchMessage](stream.Watch, "follow a command"),
		messageOf[wire.UnsubscribeMessage](stream.Unsubscribe, "end one of these"),
		messageOf[wire.AuthenticateMessage](stream.Authenticate, "continue with another credential"),
	}
	toClients = []streamMessage{
		messageOf[wire.SubscribedMessage]("subscribed", "from where a subscription begins"),
		messageOf[wire.EventMessage]("event", "an event of the log; resume only after one without `more`"),
		messageOf[wire.CaughtUpMessage]("caught_up", "everything that was there at the beginning has been sent"),
		messageOf[wire.StatusMessage]("status", "status of a watched command"),
		messageOf[wire.UnsubscribedMessage]("unsubscribed", "the end of a subscription or a watch"),
		messageOf[wire.AuthenticatedMessage]("authenticated", "the new credential counts from now on"),
		messageOf[wire.ErrorMessage]("error", "a request failed; the connection stays open"),
	}
	unauthorizedEvent = messageOf[transitions.Problem]("unauthorized", "the credential has ended; the last event")
	ofLogStream       = []streamMessage{messageOf[wire.CloudEvent]("message", "an event of the log; its id is its position"), unauthorizedEvent}
	ofStatusStream    = []streamMessage{messageOf[wire.CommandStatus]("status", "status of the command; the last one is final"), unauthorizedEvent}
)

// asyncAPI describes what streams as an AsyncAPI document: the WebSocket, and the two event streams. The workflows are those
// whose events are in the log.
func asyncAPI(public publicURL, workflows []*workflow.Workflow) ([]byte, error) {
	a := &asyncDescriber{schemas: newSchemas(), messages: jsonObject{}, channels: jsonObject{}, operations: jsonObject{}}
	a.channel("stream", "/v1/stream", "The WebSocket, subprotocol `"+Subprotocol+"`: the log and the progress of commands.",
		jsonObject{"ws": jsonObject{"method": "GET"}}, nil)
	a.operation("ask", "stream", "receive", fromClients, true)
	a.operation("tell", "stream", "send", toClients, true)
	a.channel("events", "/v1/events", "The log as server-sent events, for `Accept: text/event-stream`; `Last-Event-ID` resumes it.",
		jsonObject{}, nil)
	a.operation("sendEvents", "events", "send", ofLogStream, false)
	a.channel("command", "/v1/commands/{scope}/{key}",
		"How a command stands as server-sent events, for `Accept: text/event-stream`, up to its end.",
		jsonObject{}, jsonObject{"scope": jsonObject{"description": "the scope of the command"}, "key": jsonObject{"description": "its key"}})
	a.operation("sendStatuses", "command", "send", ofStatusStream, false)
	a.refine(workflows)
	info := infoOf("Streams of a Pawl service. Their paths are in /openapi.json. Explained in " + docsURL + "protocol-events.md.")
	document := jsonObject{"asyncapi": "3.0.0", "defaultContentType": mediaJSON,
		"info": jsonObject{"title": info.Title, "version": info.Version, "description": info.Description,
			"license": jsonObject{"name": info.License.Name}},
		"channels": a.channels, "operations": a.operations, "components": jsonObject{"schemas": a.schemas.Named, "messages": a.messages}}
	if public.host != "" {
		document["servers"] = jsonObject{"public": jsonObject{"host": public.host, "pathname": cmp.Or(public.prefix, "/"),
			"protocol": strings.Replace(public.scheme, "http", "ws", 1)}}
	}
	return schemagen.Text(document)
}

type asyncDescriber struct {
	schemas                        *schemagen.Components
	messages, channels, operations jsonObject
}

func (a *asyncDescriber) channel(name, address, doc string, bindings, parameters jsonObject) {
	c := jsonObject{"address": address, "description": doc, "messages": jsonObject{}}
	if len(bindings) > 0 {
		c["bindings"] = bindings
	}
	if parameters != nil {
		c["parameters"] = parameters
	}
	a.channels[name] = c
}

// operation says that messages are sent or received on a channel. On a WebSocket a message names itself.
func (a *asyncDescriber) operation(name, channel, action string, all []streamMessage, named bool) {
	var refs []jsonObject
	for _, m := range all {
		component := channel + "." + m.name
		payload := a.schemas.Answer(m.typ)
		if named {
			if action == "receive" {
				payload = a.schemas.Request(m.typ)
			}
			a.schemas.Named[m.typ.Name()].Properties["op"] = constant(m.name)
		}
		a.messages[component] = jsonObject{"name": m.name, "summary": m.doc, "contentType": mediaJSON, "payload": payload}
		a.channels[channel].(jsonObject)["messages"].(jsonObject)[m.name] = jsonObject{"$ref": "#/components/messages/" + component}
		refs = append(refs, jsonObject{"$ref": "#/channels/" + channel + "/messages/" + m.name})
	}
	a.operations[name] = jsonObject{"action": action, "channel": jsonObject{"$ref": "#/channels/" + channel}, "messages": refs}
}

// refine says of members that are JSON or texts to Go what they can be.
func (a *asyncDescriber) refine(workflows []*workflow.Workflow) {
	a.schemas.Named["SubscribeMessage"].Properties["after"] = &jsonschema.Schema{AnyOf: []contract.Schema{
		{Type: "integer", Minimum: number(0), Maximum: number(math.MaxInt64), Format: "int64"}, {Type: "string", Enum: []any{"start", "now"}}}}
	a.schemas.Named["CommandStatus"].Properties["problem"] = a.schemas.Answer(reflect.TypeFor[transitions.Problem]())
	event := a.schemas.Named["CloudEvent"].Properties
	event["specversion"] = constant("1.0")
	for _, w := range workflows {
		for _, s := range w.Steps {
			event["type"].Examples = append(event["type"].Examples, w.Name+"."+s.Name)
		}
	}
}
