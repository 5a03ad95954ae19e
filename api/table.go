package api

import (
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Routes is the table of routes: every address of Pawl, once.
func Routes() []Route {
	var all []Route
	for _, part := range [][]Route{callerRoutes, keyRoutes, commandRoutes, readingRoutes, logRoutes, inboxRoutes,
		nodeRoutes, caseRoutes, migrationRoutes, deadMessageRoutes, sinkRoutes, documentRoutes} {
		for _, r := range part {
			all = append(all, r.complete())
		}
	}
	return all
}

// Sections of the route table.
const (
	ofCaller   = "Who calls"
	ofKeys     = "API keys"
	ofCommand  = "Commands"
	ofReading  = "Reading"
	ofLog      = "The log"
	ofInbox    = "Inbox"
	ofOperator = "Operators"
	ofMachines = "Documents"
)

// sections maps sections to their pages in docs.
var sections = map[string]string{
	ofCaller:   "protocol.md#who-calls",
	ofKeys:     "protocol.md#api-keys",
	ofCommand:  "protocol-commands.md",
	ofReading:  "protocol-reading.md",
	ofLog:      "protocol-events.md",
	ofInbox:    "protocol-inbox.md",
	ofOperator: "protocol-operators.md",
	ofMachines: "protocol.md#documents",
}

const (
	atID  = "/instances/{id}"
	atKey = "/workflows/{workflow}/keys/{business_key}"
	v1    = "/v1"
	ops   = v1 + "/ops"
	keys  = v1 + "/keys"

	docs       = "/docs"
	atOpenAPI  = "/openapi.json"
	atAsyncAPI = "/asyncapi.json"
)

var callerRoutes = []Route{
	{Section: ofCaller, Method: "GET", Path: "/v1/me", Grant: AnyCaller, handle: show((*API).me), Params: params(aGrant),
		Doc: "the caller: actor, proof of identity, roles and grants", Answers: []Answer{answer[wire.Me](200)}},
	{Section: ofCaller, Method: "POST", Path: "/v1/tickets", Grant: AnyCaller, ByItem: true, NoKey: true, handle: (*API).issueTicket,
		Doc:     "create a [ticket](access.md#tickets) with rights of the caller",
		Body:    &Body{Type: reflect.TypeFor[wire.TicketRequest](), Media: []string{mediaJSON}, Limit: func(Limits) int64 { return maxTicketRequest }},
		Answers: []Answer{answer[wire.Ticket](201)}, Headers: []Header{setCookie},
		Codes: []workflow.Code{workflow.NotFound, workflow.InstanceNotFound}},
}

var keyRoutes = []Route{
	{Section: ofKeys, Method: "GET", Path: keys, Grant: auth.Keys, handle: show((*API).apiKeys), EmptyIsNone: true,
		Doc:     "the keys, including revoked ones, without their texts, oldest first",
		Params:  params(forAll, pageLimit, pageCursor),
		Answers: []Answer{answer[APIKeyPage](200)}, Codes: []workflow.Code{workflow.NotFound}},
	{Section: ofKeys, Method: "POST", Path: keys, Grant: auth.Keys, handle: (*API).createAPIKey, Body: bodyOfOperation[NewAPIKey](),
		Doc: "create a key; `key` of the answer is its text, which is shown once", Answers: []Answer{answer[APIKeyText](201)},
		Headers: []Header{location}, Codes: []workflow.Code{workflow.NotFound, workflow.Conflict}},
	{Section: ofKeys, Method: "GET", Path: keys + "/{api_key}", Grant: auth.Keys, handle: show((*API).apiKey), Params: params(forAll),
		Doc: "one key", Answers: []Answer{answer[APIKey](200)}, Codes: []workflow.Code{workflow.NotFound}},
	{Section: ofKeys, Method: "POST", Path: keys + "/{api_key}/rotate", Grant: auth.Keys, handle: (*API).rotateAPIKey, Params: params(forAll),
		Doc: "create a new text; the old one stays valid for a while", Body: bodyOfOperation[APIKeyRotation](),
		Answers: []Answer{answer[APIKeyText](200)}, Codes: []workflow.Code{workflow.NotFound, workflow.Conflict}},
	{Section: ofKeys, Method: "DELETE", Path: keys + "/{api_key}", Grant: auth.Keys, handle: removed((*API).revokeAPIKey), Params: params(forAll),
		Doc:     "revoke the key: every node rejects it within a second, and closes its connections; 204, even if it was revoked before",
		Answers: []Answer{{Status: 204}}, Codes: []workflow.Code{workflow.NotFound}},
}

var commandRoutes = []Route{
	command("/v1/workflows/{workflow}/{transition}", "create an instance; the body is the payload", ofCreations),
	command(v1+atID+"/{transition}", "execute a transition of an instance", ofChanges),
	command(v1+atKey+"/{transition}", "the same, by business key; also creates an instance with it", ofCreations),
	{Section: ofCommand, Method: "POST", Path: "/v1/commands", Grant: Submit, ByItem: true, ActsAs: true, handle: (*API).bulk,
		Doc: "submit many commands", Params: params(dryRun, preferEnd),
		Answers: []Answer{answer[[]wire.BulkResult](200)}, Headers: append([]Header{applied, dry}, ofRates...),
		Codes: []workflow.Code{workflow.RateLimited},
		Body: &Body{Type: reflect.TypeFor[[]wire.BulkCommand](), Media: []string{mediaJSON, mediaNDJSON},
			Limit: func(l Limits) int64 { return l.BulkBody }}},
	{Section: ofCommand, Method: "GET", Path: "/v1/commands/{scope}/{key...}", Grant: Read, ByItem: true, handle: (*API).commandStatus,
		Doc: "the [status](protocol-in-flight.md#status) of the command", Params: params(preferWait, noneMatch, lastEventID),
		Answers: []Answer{answer[wire.CommandStatus](200), streamed[wire.CommandStatus](), {Status: 204}, {Status: 304}}, Headers: []Header{etag, applied},
		Codes: slices.Concat(keyCodes, []workflow.Code{workflow.CommandNotFound, workflow.KeyExpired, workflow.ShuttingDown})},
	{Section: ofCommand, Method: "DELETE", Path: "/v1/commands/{scope}/{key...}", Grant: Submit, ByItem: true, handle: (*API).cancelCommand,
		Doc:     "[cancel](protocol-in-flight.md#cancellation) a command in flight",
		Answers: []Answer{answer[wire.CommandStatus](200), answer[wire.CommandStatus](202)}, Headers: []Header{etag, location, retryLater},
		Codes: slices.Concat(keyCodes, []workflow.Code{workflow.CommandNotFound, workflow.KeyExpired, workflow.RoleRequired,
			workflow.WorkflowNotFound, workflow.NotOnThisNode, workflow.InProgress})},
}

var readingRoutes = both(
	Route{Section: ofReading, Method: "GET", Path: v1 + atID, Grant: Read, handle: (*API).instance,
		Doc: "an instance, with [what waits on it](protocol-reading.md#what-waits-on-an-instance); the `ETag` begins with its version. " +
			"`version` or `at` select a past version",
		Params: params(asOf, noneMatch), Codes: instanceCodes, Headers: []Header{etag},
		Answers: []Answer{answer[wire.InstanceView](200), answer[wire.PastInstance](200), {Status: 304}}},
	Route{Section: ofReading, Method: "GET", Path: v1 + atID + "/history", Grant: Read, handle: show((*API).history), EmptyIsNone: true,
		Doc:    "audit rows with a version after `after`, oldest first; `cause` and `caused_by` as in [events](protocol-events.md#the-log)",
		Params: params(afterVersion, pageLimit), Answers: []Answer{answer[wire.History](200)}, Codes: instanceCodes},
	Route{Section: ofReading, Method: "GET", Path: v1 + atID + "/children", Grant: Read, handle: show((*API).children), EmptyIsNone: true,
		Doc: "the [children](protocol-reading.md#parents-and-children) that the caller may read, in the order of their starts; `end` is " +
			"the transition that a child's completion causes, `stuck`: a command waits for an operator, `deferred`: the completion waits " +
			"for another state",
		Params:  params(ofStates, ofOpen, ofStuck, pageLimit, pageCursor),
		Answers: []Answer{answer[wire.ChildPage](200)}, Codes: instanceCodes},
	Route{Section: ofReading, Method: "GET", Path: v1 + atID + "/transitions", Grant: Read, handle: show((*API).options),
		Doc: "the transitions that the caller can execute now, and why not the others; `stuck`: commands that wait for an operator, with a " +
			"`message` that says why and what can be done", Answers: []Answer{answer[wire.Options](200)}, Codes: definedCodes},
	Route{Section: ofReading, Method: "GET", Path: v1 + atID + "/diagram", Grant: Read, handle: (*API).instanceDiagram,
		Doc: "the diagram of its workflow with its state marked", Params: params(aFormat), Answers: drawings, Codes: definedCodes},
	Route{Section: ofReading, Method: "GET", Path: "/v1/instances", Grant: Read, handle: show((*API).instances), EmptyIsNone: true,
		Doc:     "a page of instances, see [lists](protocol-reading.md#lists); `next` is the cursor of the next page",
		Params:  params(ofFlow, ofVersion, ofStates, ofOpen, ofKey, attributeRanges, between, inOrder, pageLimit, pageCursor),
		Answers: []Answer{answer[wire.InstancePage](200)}, Codes: []workflow.Code{workflow.WorkflowNotFound}},
	Route{Section: ofReading, Method: "GET", Path: "/v1/counts", Grant: Read, handle: show((*API).counts), EmptyIsNone: true,
		Doc:    "number of instances of each workflow, version and state, see [counts](protocol-reading.md#counts)",
		Params: params(ofFlow, ofVersion, ofStates, ofOpen, attributes, forAll), Answers: []Answer{answer[inspect.Counts](200)},
		Codes: []workflow.Code{workflow.WorkflowNotFound}},
	Route{Section: ofReading, Method: "GET", Path: "/v1/workflows", Grant: Read, handle: show((*API).workflows),
		Doc: "the workflows, by name", Answers: []Answer{answer[wire.WorkflowList](200)}},
	Route{Section: ofReading, Method: "GET", Path: "/v1/workflows/{workflow}", Grant: Read, handle: (*API).workflow,
		Doc: "states, transitions, and a JSON Schema of every payload", Params: params(aVersion, noneMatch),
		Answers: []Answer{answer[workflow.Description](200), {Status: 304}}, Headers: []Header{etag},
		Codes: []workflow.Code{workflow.WorkflowNotFound}},
	Route{Section: ofReading, Method: "GET", Path: "/v1/workflows/{workflow}/diagram", Grant: Read, handle: (*API).workflowDiagram,
		Doc: "a diagram", Params: params(aFormat, aVersion), Answers: drawings, Codes: []workflow.Code{workflow.WorkflowNotFound}},
)

var logRoutes = []Route{
	{Section: ofLog, Method: "GET", Path: "/v1/events", Grant: Read, handle: (*API).events, EmptyIsNone: true,
		Doc:     "a page of the log, or an event stream of it",
		Params:  params(afterPosition, pageLimit, ofFlow, ofOne, ofKey, attributes, ofType, ofState, preferWait, lastEventID),
		Answers: []Answer{answer[wire.Events](200), streamed[jsontext.Value]()}, Headers: []Header{applied},
		Codes: []workflow.Code{workflow.EventsGone, workflow.ShuttingDown, workflow.WorkflowNotFound}},
	{Section: ofLog, Method: "GET", Path: "/v1/stream", Grant: Streaming, ByItem: true, handle: (*API).webSocket,
		Doc: "a WebSocket: the log, and the status of commands", Operations: []StreamOperation{
			{stream.Subscribe, Streaming, "follow the log"}, {stream.Watch, Streaming, "follow a command"},
			{stream.Unsubscribe, Streaming, "end a subscription or a watch"},
			{stream.Authenticate, Streaming, "replace the credential"}},
		Answers: []Answer{{Status: 101}}, Codes: []workflow.Code{workflow.ShuttingDown}},
}

var inboxRoutes = []Route{
	{Section: ofInbox, Method: "POST", Path: "/v1/inbox/{consumer}", Grant: Public, handle: (*API).receive, AnyQuery: true,
		Doc: "receive a signed message", Body: &Body{Limit: func(Limits) int64 { return transitions.MaxMessage }},
		Answers: ofMessages, Headers: slices.Concat(ofReceipts, ofRates),
		Codes: append(without(messageCodes, workflow.KeyExpired), workflow.Unauthorized, workflow.Unavailable, workflow.TimedOut)},
}

var nodeRoutes = []Route{
	{Section: ofOperator, Method: "GET", Path: atHealth, Grant: Public, handle: show((*API).healthy), AnyQuery: true,
		Doc: "the process serves", Answers: []Answer{answer[Health](200)}},
	{Section: ofOperator, Method: "GET", Path: atReady, Grant: Public, handle: show((*API).ready), AnyQuery: true,
		Doc: "the node accepts requests: the database answers, and the node is not stopping", Answers: []Answer{answer[Health](200)},
		Codes: []workflow.Code{workflow.ShuttingDown, workflow.Unavailable, workflow.TimedOut}},
	{Section: ofOperator, Method: "GET", Path: "/metrics", Grant: OperateAll, handle: (*API).metrics, AnyQuery: true,
		Doc: "metrics for Prometheus", Answers: []Answer{{Status: 200, Media: "text/plain"}},
		Codes: []workflow.Code{workflow.NotFound}},
	{Section: ofOperator, Method: "GET", Path: ops + "/verify", Grant: Operate, handle: show((*API).verify), Params: params(ofOne),
		Doc: "recompute the audit chains of the tenant, or of one instance, and compare the instances and the events of the outbox with them: " +
			"`intact`, and the first broken row of each chain",
		Answers: []Answer{answer[inspect.Verification](200)}, Codes: []workflow.Code{workflow.InstanceNotFound}},
	{Section: ofOperator, Method: "GET", Path: ops + "/keys", Grant: Operate, handle: show((*API).keys), Params: params(forAll),
		Doc: "commands by status; those that are due, stale, lapsed, stuck or expired; suppressed duplicates by scope, of this " +
			"node since its start (`scopes`) and of all nodes in the last 30 days (`recorded`)",
		Answers: []Answer{answer[inspect.Keys](200)}},
	{Section: ofOperator, Method: "GET", Path: ops + "/retention", Grant: OperateAll, handle: show((*API).retention),
		Doc: "the node that runs retention, and the partitions, with the readers that still need expired ones; `keep_events` in seconds " +
			"is the configuration of the answering node", Answers: []Answer{answer[inspect.Retention](200)}},
	{Section: ofOperator, Method: "GET", Path: ops + "/nodes", Grant: Operate, handle: show((*API).nodes), Params: params(forAll),
		Doc: "current and recent nodes: program, known versions, maintenance tasks (`leads`, `migrations`), sinks that the node delivers to, " +
			"and the number of commands in flight that it has leased",
		Answers: []Answer{answer[NodeList](200)}},
	{Section: ofOperator, Method: "GET", Path: ops + "/versions", Grant: OperateAll, handle: show((*API).versions),
		Doc: "all versions of workflows that have run here: the default version, the number of instances by state, and the nodes " +
			"that know the version", Answers: []Answer{answer[VersionList](200)}},
	change[Beginning]("PUT", ops+"/begins/{workflow}", OperateAll, (*API).begin, "set the default version of a workflow "+
		"on all nodes: new instances begin with at most this version; 204 when every serving node has confirmed, even if it was set before",
		workflow.WorkflowNotFound),
	{Section: ofOperator, Method: "DELETE", Path: ops + "/begins/{workflow}", Grant: OperateAll, handle: removed((*API).beginNewest),
		Doc: "remove the default version: new instances begin with the newest version that each node knows; 204 when every serving node " +
			"has confirmed, even if it was not set",
		Answers: []Answer{{Status: 204}}, Codes: []workflow.Code{workflow.WorkflowNotFound}},
}

var caseRoutes = append(both(
	Route{Section: ofOperator, Method: "GET", Path: ops + atID, Grant: Operate, handle: show((*API).whole),
		Doc: "an instance as in `GET /v1/instances/{id}`, with its commands `in_flight`, its last 50 transitions as `timeline`, " +
			"and whether its audit `chain` is intact", Answers: []Answer{answer[Case](200)}, Codes: instanceCodes},
	operation[Reason](ops+atID+"/pause", operateInstance(transitions.Pause), "pause an instance"),
	operation[Reason](ops+atID+"/resume", operateInstance(transitions.Resume), "resume an instance"),
	tried(withCodes(operation[InstanceMigration](ops+atID+"/migrate", (*API).migrateInstance,
		"migrate an instance to another version of its workflow, see [migration](changing-a-workflow.md#migration)"),
		workflow.MigrationRefused, workflow.MigrationWaits)),
	tried(withCodes(operation[Correction](ops+atID+"/correct", (*API).correctInstance,
		"change the state or the data of an instance, with a reason: see "+
			"[correcting one case](changing-a-workflow.md#correcting-one-case)"),
		workflow.CorrectionRefused))),
	Route{Section: ofOperator, Method: "GET", Path: ops + "/stuck", Grant: Operate, handle: show((*API).stuck), EmptyIsNone: true,
		Doc: "the commands that wait for an operator, longest waiting first, with the `business_key` of the instance; `effect` is the key " +
			"that the activity sends to the other system, `undo` marks the undo of the transition's effect",
		Params: params(ofFlow, ofKey, ofOne, pageLimit, pageCursor), Answers: []Answer{answer[CommandPage](200)},
		Codes: []workflow.Code{workflow.WorkflowNotFound}},
	Route{Section: ofOperator, Method: "GET", Path: ops + "/commands", Grant: Operate, handle: show((*API).commands), EmptyIsNone: true,
		Doc: "the commands in flight, including timers, as `GET /v1/ops/keys` counts them, see " +
			"[commands in flight](protocol-operators.md#lists-of-commands-in-flight)",
		Params: params(commandKind, ofFlow, ofActor, ofProof, pageLimit, pageCursor), Answers: []Answer{answer[CommandPage](200)},
		Codes: []workflow.Code{workflow.WorkflowNotFound}},
	operation[Operation](ops+"/commands/retry", operateCommand(transitions.Retry), "restart a stuck command with all its attempts"),
	operation[Operation](ops+"/commands/resolve", operateCommand(transitions.Resolve), "end a stuck command with a result"),
	operation[Operation](ops+"/commands/abandon", operateCommand(transitions.Abandon), "abandon a stuck command"),
	Route{Section: ofOperator, Method: "GET", Path: ops + "/paused", Grant: Operate, handle: show((*API).paused), EmptyIsNone: true,
		Doc:    "all paused `workflows`, and a page of the paused `instances`",
		Params: params(ofFlow, pageLimit, pageCursor), Answers: []Answer{answer[PausedList](200)},
		Codes: []workflow.Code{workflow.WorkflowNotFound}},
	change[Reason]("PUT", ops+"/paused/{workflow}", Operate, (*API).pauseWorkflow, "pause a workflow; 204, even if it was paused before",
		workflow.WorkflowNotFound),
	Route{Section: ofOperator, Method: "DELETE", Path: ops + "/paused/{workflow}", Grant: Operate, handle: removed((*API).resumeWorkflow),
		Doc: "resume a workflow; 204, even if it was not paused", Answers: []Answer{{Status: 204}},
		Codes: []workflow.Code{workflow.WorkflowNotFound, workflow.Locked, workflow.Overloaded, workflow.ShuttingDown}},
)

var migrationRoutes = []Route{
	{Section: ofOperator, Method: "GET", Path: ops + "/migrations", Grant: OperateAll, handle: show((*API).migrations),
		Doc:     "the latest migrations of versions, newest first; `plans` are those of the answering node",
		Answers: []Answer{answer[MigrationList](200)}},
	{Section: ofOperator, Method: "POST", Path: ops + "/migrations", Grant: OperateAll, handle: (*API).migrate, NoKey: true,
		Doc: "start a migration of the instances of all tenants; one at a time for each workflow. `dry_run` reports for each state " +
			"the result, the instances that the plan rejects, with reasons, and the number of timers that would be overdue",
		Params: params(dryRun, migrationKey), Body: bodyOfOperation[NewMigration](),
		Answers: []Answer{answer[inspect.Migration](202), answer[inspect.MigrationPreview](200)}, Headers: []Header{dry},
		Codes: []workflow.Code{workflow.WorkflowNotFound, workflow.NotOnThisNode, workflow.Conflict, workflow.KeyMissing,
			workflow.KeyInvalid, workflow.KeyReused}},
	{Section: ofOperator, Method: "GET", Path: ops + "/migrations/{migration}", Grant: OperateAll, handle: show((*API).migration),
		Doc: "one migration: the number of `migrated`, `skipped` and `rejected` instances, with reasons, those `waiting`, and what it " +
			"is `held` up by",
		Answers: []Answer{answer[inspect.Migration](200)}, Codes: []workflow.Code{workflow.NotFound}},
	{Section: ofOperator, Method: "POST", Path: ops + "/migrations/{migration}/stop", Grant: OperateAll, NoKey: true,
		handle: answered((*API).stopMigration), Doc: "stop a migration; migrated instances stay migrated",
		Body:    bodyOfOperation[Reason](),
		Answers: []Answer{answer[inspect.Migration](200)}, Codes: []workflow.Code{workflow.NotFound}},
}

var deadMessageRoutes = []Route{
	{Section: ofOperator, Method: "GET", Path: ops + "/inbox", Grant: Operate, handle: show((*API).deadMessages), EmptyIsNone: true,
		Doc: "dead messages, with workflow and business key as far as they can be read; " +
			"the oldest of each consumer first", Params: params(ofConsumer, messageStatus, ofFlow, ofKey, pageLimit, pageCursor),
		Answers: []Answer{answer[DeadMessagePage](200)}},
	{Section: ofOperator, Method: "GET", Path: ops + "/inbox/body", Grant: Operate, handle: (*API).deadMessageBody, Params: params(aMessage),
		Doc: "the body of a dead message as it was sent", Answers: []Answer{{Status: 200, Media: mediaBytes}},
		Codes: []workflow.Code{workflow.NotFound, workflow.TooLarge}},
	{Section: ofOperator, Method: "GET", Path: ops + "/inbox/kept", Grant: Operate, handle: show((*API).keptMessages), EmptyIsNone: true,
		Doc:    "messages as they were received, of consumers that keep them; the oldest of each consumer first",
		Params: params(ofConsumer, ofMessage, pageLimit, pageCursor), Answers: []Answer{answer[KeptMessagePage](200)}},
	{Section: ofOperator, Method: "GET", Path: ops + "/inbox/kept/message", Grant: Operate, handle: show((*API).keptMessage),
		Params: params(aMessage), Doc: "one kept message, with its headers and its body",
		Answers: []Answer{answer[RawMessage](200)}, Codes: []workflow.Code{workflow.NotFound}},
	{Section: ofOperator, Method: "POST", Path: ops + "/inbox/retry", Grant: Operate, handle: (*API).retryMessage, NoKey: true,
		Doc:  "consume a dead message again: a stored refusal is withdrawn, and the answer is that of the message",
		Body: bodyOfOperation[MessageOperation](), Answers: ofMessages, Headers: ofReceipts, Codes: messageCodes},
	{Section: ofOperator, Method: "POST", Path: ops + "/inbox/discard", Grant: Operate, handle: answered((*API).discardMessage), NoKey: true,
		Doc:  "discard a dead message permanently; its sender is refused from then on. A message that was consumed meanwhile is `retried`",
		Body: bodyOfOperation[MessageOperation](), Answers: []Answer{answer[DeadMessage](200)}, Codes: []workflow.Code{workflow.NotFound}},
}

var sinkRoutes = []Route{
	{Section: ofOperator, Method: "GET", Path: ops + "/sinks", Grant: Operate, handle: show((*API).sinks), EmptyIsNone: true,
		Params: params(forAll), Doc: "the sinks: delivering node, pause, failures, lag, age of the oldest missing event, dead letters",
		Answers: []Answer{answer[SinkList](200)}},
	{Section: ofOperator, Method: "GET", Path: ops + "/sinks/{sink}", Grant: Operate, handle: show((*API).sink), EmptyIsNone: true,
		Doc: "one sink, with its cursor in the log", Params: params(forAll, pageLimit, pageCursor),
		Answers: []Answer{answer[SinkPage](200)}, Codes: []workflow.Code{workflow.NotFound}},
	{Section: ofOperator, Method: "GET", Path: ops + "/sinks/{sink}/dead", Grant: Operate, handle: show((*API).deadLetters), EmptyIsNone: true,
		Doc: "the dead letters of a sink", Params: params(deadStatus, ofFlow, ofType, ofOne, ofKey, forAll, pageLimit, pageCursor),
		Answers: []Answer{answer[DeadPage](200)}, Codes: []workflow.Code{workflow.NotFound, workflow.WorkflowNotFound}},
	changeDead("redrive", (*API).redrive, "deliver dead letters again; the answer has their number: `{\"changed\":3}`"),
	changeDead("skip", (*API).skipDead, "discard dead letters"),
	change[SinkMove]("POST", ops+"/sinks/{sink}/move", Operate, (*API).moveSink,
		"move the cursor: back, to deliver again, or forward, with a reason; 204", workflow.NotFound),
	change[Reason]("POST", ops+"/sinks/{sink}/pause", OperateAll, (*API).pauseSink,
		"pause deliveries; 204, even if they were paused before", workflow.NotFound),
	change[Reason]("POST", ops+"/sinks/{sink}/resume", OperateAll, (*API).resumeSink,
		"resume deliveries; 204, even if they were not paused", workflow.NotFound),
	change[Reason]("POST", ops+"/sinks/{sink}/forget", OperateAll, (*API).forgetSink,
		"delete a sink that no node has any more, with its cursors and dead letters; 204", workflow.NotFound),
}

var documentRoutes = []Route{
	{Section: ofMachines, Method: "GET", Path: atOpenAPI, Grant: Read, handle: described(func(d *documents) document { return d.openAPI }),
		Doc:    "the API as OpenAPI 3.1: every request and answer, and each transition of the node's workflows with its payload",
		Params: params(noneMatch), Answers: []Answer{answer[jsontext.Value](200), {Status: 304}}, Headers: []Header{etag, encoded}},
	{Section: ofMachines, Method: "GET", Path: atAsyncAPI, Grant: Read, handle: described(func(d *documents) document { return d.asyncAPI }),
		Doc:    "the streams as AsyncAPI 3: every message of the WebSocket and of the event streams",
		Params: params(noneMatch), Answers: []Answer{answer[jsontext.Value](200), {Status: 304}}, Headers: []Header{etag, encoded}},
	pageFile(docs, "index.html", mediaHTML, "a page that shows the OpenAPI document"),
	pageFile(docs+"/page.js", "page.js", mediaScript, "its script"),
	pageFile(docs+"/rapidoc.js", "rapidoc.js", mediaScript,
		"its renderer, [RapiDoc](https://rapidocweb.com), which loads nothing from other hosts"),
}
