package api

import (
	"reflect"
	"strings"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Routes is the table of routes: every address of Pawl, once.
func Routes() []Route {
	var all []Route
	for _, part := range [][]Route{commandRoutes, readingRoutes, logRoutes, inboxRoutes,
		nodeRoutes, caseRoutes, deadMessageRoutes, sinkRoutes} {
		for _, r := range part {
			all = append(all, r.complete())
		}
	}
	return all
}

// Sections of docs/protocol.md.
const (
	ofCommand  = "Commands"
	ofReading  = "Reading"
	ofLog      = "The log"
	ofInbox    = "Inbox"
	ofOperator = "Operators"
)

const (
	atID  = "/instances/{id}"
	atKey = "/workflows/{workflow}/keys/{business_key}"
	v1    = "/v1"
	ops   = v1 + "/ops"
)

var commandRoutes = []Route{
	command("/v1/workflows/{workflow}/{transition}", "create an instance; the body is the payload"),
	command(v1+atID+"/{transition}", "a transition of an instance"),
	command(v1+atKey+"/{transition}", "the same, by the caller's own number"),
	{Section: ofCommand, Method: "POST", Path: "/v1/commands", Grant: Submit, handle: (*API).bulk, Doc: "many at once, see below",
		Params: params(dryRun, preferEnd), Answers: []Answer{answer[[]BulkResult](200)}, Codes: []workflow.Code{workflow.RateLimited},
		Body: &Body{Type: reflect.TypeFor[[]BulkCommand](), Media: []string{mediaJSON, mediaNDJSON},
			Limit: func(l Limits) int64 { return l.BulkBody }}},
	{Section: ofCommand, Method: "GET", Path: "/v1/commands/{scope}/{key...}", Grant: Read, handle: (*API).commandStatus,
		Doc: "how the command stands: see [in flight](#in-flight)", Params: params(preferWait, noneMatch, lastEventID),
		Answers: []Answer{answer[CommandStatus](200), {200, mediaEventStream, reflect.TypeFor[CommandStatus]()}, {204, "", nil},
			{304, "", nil}},
		Codes: append(keyCodes[:4:4], workflow.CommandNotFound, workflow.KeyExpired, workflow.ShuttingDown)},
	{Section: ofCommand, Method: "DELETE", Path: "/v1/commands/{scope}/{key...}", Grant: Submit, handle: (*API).cancelCommand,
		Doc: "ask a command in flight to stop", Answers: []Answer{answer[CommandStatus](200), answer[CommandStatus](202)},
		Codes: append(keyCodes[:4:4], workflow.CommandNotFound, workflow.KeyExpired, workflow.RoleRequired, workflow.WorkflowNotFound)},
}

var readingRoutes = both(
	Route{Section: ofReading, Method: "GET", Path: v1 + atID, Grant: Read, handle: (*API).instance,
		Doc: "an instance, with [what waits on it](#what-waits-on-an-instance); `ETag` is its version, and where something waits, more. " +
			"With `version` or `at` as it was then",
		Params: params(asOf, noneMatch), Codes: instanceCodes,
		Answers: []Answer{answer[InstanceView](200), answer[PastInstance](200), {304, "", nil}}},
	Route{Section: ofReading, Method: "GET", Path: v1 + atID + "/history", Grant: Read, handle: show((*API).history), EmptyIsNone: true,
		Doc:    "its audit rows with a version after `after`, oldest first; `cause` and `caused_by` are those of [its events](#the-log)",
		Params: params(afterVersion, pageLimit), Answers: []Answer{answer[History](200)}, Codes: instanceCodes},
	Route{Section: ofReading, Method: "GET", Path: v1 + atID + "/transitions", Grant: Read, handle: show((*API).options),
		Doc: "what the caller can do with it now, and why not; `stuck` is what of it waits for an operator, with a `message` that says why " +
			"and what can be done", Answers: []Answer{answer[Options](200)}, Codes: instanceCodes},
	Route{Section: ofReading, Method: "GET", Path: v1 + atID + "/diagram", Grant: Read, handle: (*API).instanceDiagram,
		Doc: "its workflow with its state marked", Params: params(aFormat), Answers: drawings, Codes: instanceCodes},
	Route{Section: ofReading, Method: "GET", Path: "/v1/instances", Grant: Read, handle: show((*API).instances), EmptyIsNone: true,
		Doc:     "a page of instances, see [lists](#lists); `next` is the cursor of the next one",
		Params:  params(ofFlow, ofVersion, ofStates, ofOpen, ofKey, attributes, between, inOrder, pageLimit, pageCursor),
		Answers: []Answer{answer[InstancePage](200)}, Codes: []workflow.Code{workflow.WorkflowNotFound}},
	Route{Section: ofReading, Method: "GET", Path: "/v1/counts", Grant: Read, handle: show((*API).counts), EmptyIsNone: true,
		Doc:    "how many instances there are of each workflow, version and state, see [counts](#counts)",
		Params: params(ofFlow, ofVersion, ofStates, ofOpen, forAll), Answers: []Answer{answer[Counts](200)},
		Codes: []workflow.Code{workflow.WorkflowNotFound}},
	Route{Section: ofReading, Method: "GET", Path: "/v1/workflows", Grant: Read, handle: show((*API).workflows),
		Doc: "the workflows, by name", Answers: []Answer{answer[WorkflowList](200)}},
	Route{Section: ofReading, Method: "GET", Path: "/v1/workflows/{workflow}", Grant: Read, handle: (*API).workflow,
		Doc: "states, transitions, and a JSON Schema of every payload", Params: params(aVersion, noneMatch),
		Answers: []Answer{answer[workflow.Description](200), {304, "", nil}}, Codes: []workflow.Code{workflow.WorkflowNotFound}},
	Route{Section: ofReading, Method: "GET", Path: "/v1/workflows/{workflow}/diagram", Grant: Read, handle: (*API).workflowDiagram,
		Doc: "a drawing", Params: params(aFormat, aVersion), Answers: drawings, Codes: []workflow.Code{workflow.WorkflowNotFound}},
)

var logRoutes = []Route{
	{Section: ofLog, Method: "GET", Path: "/v1/events", Grant: Read, handle: (*API).events, EmptyIsNone: true,
		Doc:     "a piece of the log, or an event stream of it",
		Params:  params(afterPosition, pageLimit, ofFlow, ofOne, ofKey, attributes, ofType, ofState, preferWait, lastEventID),
		Answers: []Answer{answer[Events](200), {200, mediaEventStream, nil}},
		Codes:   []workflow.Code{workflow.EventsGone, workflow.ShuttingDown, workflow.WorkflowNotFound}},
	{Section: ofLog, Method: "GET", Path: "/v1/stream", Grant: Streaming, handle: (*API).webSocket,
		Doc:     "a WebSocket: the log and commands, as they go on",
		Answers: []Answer{{101, "", nil}}, Codes: []workflow.Code{workflow.ShuttingDown}},
}

var inboxRoutes = []Route{
	{Section: ofInbox, Method: "POST", Path: "/v1/inbox/{consumer}", Grant: Public, handle: (*API).receive, AnyQuery: true,
		Doc: "a message from outside; its signature says who sends it", Body: &Body{Limit: func(Limits) int64 { return transitions.MaxMessage }},
		Answers: receipts, Codes: append(decidedCodes[:len(decidedCodes):len(decidedCodes)], workflow.Unauthorized, workflow.Unavailable,
			workflow.TimedOut, workflow.NotFound, workflow.MessageReused, workflow.MessageNotTaken)},
}

var nodeRoutes = []Route{
	{Section: ofOperator, Method: "GET", Path: "/healthz", Grant: Public, handle: (*API).healthy, AnyQuery: true,
		Doc: "the process serves", Answers: []Answer{{200, mediaJSON, nil}}},
	{Section: ofOperator, Method: "GET", Path: "/readyz", Grant: Public, handle: (*API).ready, AnyQuery: true,
		Doc: "it can take requests: the database answers, and it is not stopping", Answers: []Answer{{200, mediaJSON, nil}},
		Codes: []workflow.Code{workflow.ShuttingDown, workflow.Unavailable, workflow.TimedOut}},
	{Section: ofOperator, Method: "GET", Path: "/metrics", Grant: OperateAll, handle: (*API).metrics, AnyQuery: true,
		Doc: "what the node does and how everything stands, for Prometheus", Answers: []Answer{{200, "text/plain", nil}},
		Codes: []workflow.Code{workflow.NotFound}},
	{Section: ofOperator, Method: "GET", Path: ops + "/verify", Grant: Operate, handle: show((*API).verify), Params: params(ofOne),
		Doc: "recompute the audit chains of the tenant, or of one instance, and hold the instances and the events of the outbox against them: " +
			"`intact`, and the first broken row of each chain",
		Answers: []Answer{answer[Verification](200)}, Codes: []workflow.Code{workflow.InstanceNotFound}},
	{Section: ofOperator, Method: "GET", Path: ops + "/keys", Grant: Operate, handle: show((*API).keys), Params: params(forAll),
		Doc:     "keys by status; what is due, stale, lapsed, stuck or past its horizon; how many duplicates this node has suppressed, by scope",
		Answers: []Answer{answer[Keys](200)}},
	{Section: ofOperator, Method: "GET", Path: ops + "/retention", Grant: OperateAll, handle: show((*API).retention),
		Doc: "which node removes what has expired, and the partitions, with who still needs those that are past their age: `keep_events`, " +
			"in seconds, as the node is configured that answers", Answers: []Answer{answer[Retention](200)}},
}

var caseRoutes = append(both(
	Route{Section: ofOperator, Method: "GET", Path: ops + atID, Grant: Operate, handle: show((*API).whole),
		Doc: "all of an instance: what `GET /v1/instances/{id}` shows, what is `in_flight` on it, its last 50 transitions as `timeline`, " +
			"and whether its audit `chain` is intact", Answers: []Answer{answer[Case](200)}, Codes: instanceCodes},
	operation[Reason](ops+atID+"/pause", operateInstance(transitions.Pause), "let an instance begin nothing new"),
	operation[Reason](ops+atID+"/resume", operateInstance(transitions.Resume), "the end of that")),
	Route{Section: ofOperator, Method: "GET", Path: ops + "/stuck", Grant: Operate, handle: show((*API).stuck), EmptyIsNone: true,
		Doc: "the commands that wait for an operator, the longest waiting first, with the `business_key` of the instance; `effect` is the key " +
			"that the activity sends along, `undo` says that it is the undo of the transition's effect",
		Params: params(ofFlow, ofKey, ofOne, pageLimit, pageCursor), Answers: []Answer{answer[StuckPage](200)},
		Codes: []workflow.Code{workflow.WorkflowNotFound}},
	operation[Operation](ops+"/commands/retry", operateCommand(transitions.Retry), "let one of them begin again with all its attempts"),
	operation[Operation](ops+"/commands/resolve", operateCommand(transitions.Resolve), "say with what result it ends"),
	operation[Operation](ops+"/commands/abandon", operateCommand(transitions.Abandon), "give it up"),
	Route{Section: ofOperator, Method: "GET", Path: ops + "/paused", Grant: Operate, handle: show((*API).paused),
		Doc: "the workflows that are paused", Answers: []Answer{answer[PausedList](200)}},
	change[Reason]("PUT", ops+"/paused/{workflow}", Operate, (*API).pauseWorkflow, "pause a workflow; 204, also where it was so before",
		workflow.WorkflowNotFound),
	Route{Section: ofOperator, Method: "DELETE", Path: ops + "/paused/{workflow}", Grant: Operate, handle: (*API).resumeWorkflow,
		Doc: "resume it; 204, also where it was so before", Answers: []Answer{{204, "", nil}},
		Codes: []workflow.Code{workflow.WorkflowNotFound, workflow.Locked, workflow.Overloaded, workflow.ShuttingDown}},
)

var deadMessageRoutes = []Route{
	{Section: ofOperator, Method: "GET", Path: ops + "/inbox", Grant: Operate, handle: show((*API).deadMessages), EmptyIsNone: true,
		Doc: "messages that were not consumed, with the workflow and the business key that they are for, as far as they can be read; " +
			"the oldest of each consumer first", Params: params(ofConsumer, messageStatus, ofFlow, ofKey, pageLimit, pageCursor),
		Answers: []Answer{answer[DeadMessagePage](200)}},
	{Section: ofOperator, Method: "GET", Path: ops + "/inbox/body", Grant: Operate, handle: (*API).deadMessageBody, Params: params(aMessage),
		Doc: "one of them as it was sent", Answers: []Answer{{200, mediaBytes, nil}},
		Codes: []workflow.Code{workflow.NotFound, workflow.TooLarge}},
	{Section: ofOperator, Method: "POST", Path: ops + "/inbox/retry", Grant: Operate, handle: (*API).retryMessage, NoKey: true,
		Doc:  "consume it again: a refusal is withdrawn, and the answer is that of the message",
		Body: bodyOfOperation[MessageOperation](), Answers: receipts,
		Codes: append(decidedCodes[:len(decidedCodes):len(decidedCodes)], workflow.NotFound, workflow.MessageReused, workflow.MessageNotTaken)},
	{Section: ofOperator, Method: "POST", Path: ops + "/inbox/discard", Grant: Operate, handle: answered((*API).discardMessage), NoKey: true,
		Doc:  "its sender is refused from then on; one that was done elsewhere after all is `retried`",
		Body: bodyOfOperation[MessageOperation](), Answers: []Answer{answer[DeadMessage](200)}, Codes: []workflow.Code{workflow.NotFound}},
}

var sinkRoutes = []Route{
	{Section: ofOperator, Method: "GET", Path: ops + "/sinks", Grant: Operate, handle: show((*API).sinks), EmptyIsNone: true,
		Params: params(forAll), Doc: "the sinks: who delivers, pause, failures, lag, age of the oldest event that is missing, dead letters",
		Answers: []Answer{answer[SinkList](200)}},
	{Section: ofOperator, Method: "GET", Path: ops + "/sinks/{sink}", Grant: Operate, handle: show((*API).sink), EmptyIsNone: true,
		Doc: "one of them, with its cursor in the log", Params: params(forAll, pageLimit, pageCursor),
		Answers: []Answer{answer[SinkPage](200)}, Codes: []workflow.Code{workflow.NotFound}},
	{Section: ofOperator, Method: "GET", Path: ops + "/sinks/{sink}/dead", Grant: Operate, handle: show((*API).deadLetters), EmptyIsNone: true,
		Doc: "its dead letters", Params: params(deadStatus, ofFlow, ofType, ofOne, ofKey, forAll, pageLimit, pageCursor),
		Answers: []Answer{answer[DeadPage](200)}, Codes: []workflow.Code{workflow.NotFound, workflow.WorkflowNotFound}},
	changeDead("redrive", (*API).redrive, "deliver dead letters again; the answer says how many: `{\"changed\":3}`"),
	changeDead("skip", (*API).skipDead, "never deliver them"),
	change[SinkMove]("POST", ops+"/sinks/{sink}/move", Operate, (*API).moveSink,
		"put the cursor to another position: back, to deliver again, or forward, with a reason; 204", workflow.NotFound),
	change[Reason]("POST", ops+"/sinks/{sink}/pause", OperateAll, (*API).pauseSink,
		"deliver nothing; 204, also where it was so before", workflow.NotFound),
	change[Reason]("POST", ops+"/sinks/{sink}/resume", OperateAll, (*API).resumeSink,
		"go on; 204, also where it was so before", workflow.NotFound),
	change[Reason]("POST", ops+"/sinks/{sink}/forget", OperateAll, (*API).forgetSink,
		"give up a sink that no node has any more, with its cursors and dead letters; 204", workflow.NotFound),
}

// both adds to each route of an instance by its id the one by its business key.
func both(routes ...Route) (all []Route) {
	for _, r := range routes {
		all = append(all, r)
		if before, after, is := strings.Cut(r.Path, atID); is {
			r.Doc = "the same, by the caller's own number"
			r.Path = before + atKey + after
			r.Codes = append(r.Codes[:len(r.Codes):len(r.Codes)], workflow.WorkflowNotFound)
			all = append(all, r)
		}
	}
	return all
}

func answer[T any](status int) Answer { return Answer{status, mediaJSON, reflect.TypeFor[T]()} }

var (
	receipts = []Answer{answer[transitions.Result](200), answer[transitions.Result](201), answer[CommandStatus](202)}
	drawings = []Answer{{200, mediaSVG, nil}, {200, mediaMermaid, nil}, {200, mediaDOT, nil}}

	keyCodes      = []workflow.Code{workflow.KeyMissing, workflow.KeyInvalid, workflow.ScopeMissing, workflow.ScopeInvalid}
	instanceCodes = []workflow.Code{workflow.InstanceNotFound}
	// decidedCodes are what may become of what is to be decided.
	decidedCodes = []workflow.Code{workflow.InvalidPayload, workflow.WorkflowNotFound, workflow.TransitionNotFound, workflow.InstanceNotFound,
		workflow.CommandAbandoned, workflow.IllegalTransition, workflow.GuardRefused, workflow.AlreadyExists, workflow.ActivityFailed,
		workflow.CommandCancelled, workflow.TooManyEffects, workflow.DataTooLarge, workflow.KeyExpired, workflow.VersionConflict, workflow.KeyReused,
		workflow.RateLimited, workflow.RoleRequired, workflow.SeparationOfDuties, workflow.InProgress, workflow.Overloaded, workflow.Paused,
		workflow.Locked, workflow.ShuttingDown}
)

// command is the route of one command.
func command(path, doc string) Route {
	return Route{Section: ofCommand, Method: "POST", Path: path, Grant: Submit, handle: (*API).command, Doc: doc,
		Params: params(dryRun, ofOneCommand), Answers: receipts, Codes: append(keyCodes[:4:4], decidedCodes...),
		Body: &Body{Media: []string{mediaJSON}, Optional: true, Limit: func(l Limits) int64 { return l.Body }}}
}

// operation is the route of what an operator does as a command.
func operation[T any](path string, handle handler, doc string) Route {
	r := Route{Section: ofOperator, Method: "POST", Path: path, Grant: Operate, handle: handle, Doc: doc,
		Params: itsKey, Body: bodyOfOperation[T](), Answers: receipts,
		Codes: append(append(keyCodes[:4:4], decidedCodes...), workflow.CommandNotFound, workflow.NotStuck)}
	if reflect.TypeFor[T]() == reflect.TypeFor[Operation]() { // which has a result
		r.Body.Limit = func(l Limits) int64 { return l.Body + maxOperation }
	}
	return r
}

// change is the route of what an operator does that needs no key: the same request
// again does no harm.
func change[T any](method, path string, g Grant, do func(*API, *request, T) error, doc string, codes ...workflow.Code) Route {
	return Route{Section: ofOperator, Method: method, Path: path, Grant: g, handle: done(do), Doc: doc,
		Body: bodyOfOperation[T](), Answers: []Answer{{204, "", nil}}, Codes: codes}
}

func changeDead(action string, do func(*API, *request, DeadSelection) (DeadChange, error), doc string) Route {
	return Route{Section: ofOperator, Method: "POST", Path: ops + "/sinks/{sink}/" + action, Grant: Operate, Doc: doc, handle: answered(do),
		Body: bodyOfOperation[DeadSelection](), Answers: []Answer{answer[DeadChange](200)},
		Codes: []workflow.Code{workflow.NotFound, workflow.WorkflowNotFound}}
}

// maxOperation is the longest body of an operation in bytes, beside a result.
const maxOperation = 16 << 10

func bodyOfOperation[T any]() *Body {
	return &Body{Type: reflect.TypeFor[T](), Media: []string{mediaJSON}, Optional: true, Limit: func(Limits) int64 { return maxOperation }}
}
