package api

import (
	"reflect"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// What rows of the table have in common.

// both adds to each route of an instance by its id the one by its business key.
func both(routes ...Route) (all []Route) {
	for _, r := range routes {
		all = append(all, r)
		if before, after, is := strings.Cut(r.Path, atID); is {
			r.Doc = "the same, by business key"
			r.Path = before + atKey + after
			r.Codes = append(r.Codes[:len(r.Codes):len(r.Codes)], workflow.WorkflowNotFound)
			all = append(all, r)
		}
	}
	return all
}

func answer[T any](status int) Answer {
	return Answer{Status: status, Media: mediaJSON, Type: reflect.TypeFor[T]()}
}

// streamed is an event stream, with the data of its events.
func streamed[T any]() Answer {
	return Answer{Status: 200, Media: mediaEventStream, Type: reflect.TypeFor[T](), Grant: Streaming}
}

var (
	// ofChanges are the answers of a command on an instance that is there, ofCreations those of one that creates it.
	ofChanges   = []Answer{answer[transitions.Result](200), answer[wire.CommandStatus](202)}
	ofCreations = append(ofChanges[:2:2], answer[wire.Existing](200), answer[transitions.Result](201))
	ofMessages  = append(ofCreations[:4:4], answer[NoCommand](200))
	drawings    = []Answer{{Status: 200, Media: mediaSVG}, {Status: 200, Media: mediaMermaid}, {Status: 200, Media: mediaDOT}}

	keyCodes      = []workflow.Code{workflow.KeyMissing, workflow.KeyInvalid, workflow.ScopeMissing, workflow.ScopeInvalid}
	instanceCodes = []workflow.Code{workflow.InstanceNotFound}
	// definedCodes are those of what the version of an instance decides.
	definedCodes = []workflow.Code{workflow.InstanceNotFound, workflow.NotOnThisNode}
	// decidedCodes are what may become of what is to be decided.
	decidedCodes = []workflow.Code{workflow.InvalidPayload, workflow.WorkflowNotFound, workflow.TransitionNotFound, workflow.InstanceNotFound,
		workflow.CredentialEnded, workflow.CommandAbandoned, workflow.IllegalTransition, workflow.GuardRefused, workflow.AlreadyExists,
		workflow.ActivityFailed,
		workflow.CommandCancelled, workflow.TooManyEffects, workflow.DataTooLarge, workflow.KeyExpired, workflow.VersionConflict,
		workflow.KeyReused,
		workflow.RateLimited, workflow.RoleRequired, workflow.SeparationOfDuties, workflow.InProgress, workflow.Overloaded, workflow.Paused,
		workflow.NotOnThisNode, workflow.Locked, workflow.ShuttingDown}
	// Neither a message nor most operations expect a version, and an operation is decided at once.
	messageCodes = append(without(decidedCodes, workflow.VersionConflict, workflow.CredentialEnded), workflow.NotFound, workflow.MessageReused,
		workflow.MessageNotTaken)
	operationCodes = without(decidedCodes, workflow.VersionConflict, workflow.CommandAbandoned, workflow.CredentialEnded)
)

func without(codes []workflow.Code, these ...workflow.Code) []workflow.Code {
	return slices.DeleteFunc(slices.Clone(codes), func(c workflow.Code) bool { return slices.Contains(these, c) })
}

// command is the route of one command.
func command(path, doc string, answers []Answer) Route {
	return Route{Section: ofCommand, Method: "POST", Path: path, Grant: Submit, ActsAs: true, handle: (*API).command, Doc: doc,
		Params: params(dryRun, ofOneCommand), Answers: answers, Headers: slices.Concat(ofReceipts, []Header{applied, dry}, ofRates),
		Codes: slices.Concat(keyCodes, decidedCodes),
		Body:  &Body{Media: []string{mediaJSON}, Optional: true, Limit: func(l Limits) int64 { return l.Body }}}
}

// operation is the route of what an operator does as a command.
func operation[T any](path string, handle handler, doc string) Route {
	r := Route{Section: ofOperator, Method: "POST", Path: path, Grant: Operate, handle: handle, Doc: doc,
		Params: itsKey, Body: bodyOfOperation[T](), Answers: []Answer{answer[transitions.Result](200)}, Headers: ofReceipts,
		Codes: slices.Concat(keyCodes, operationCodes, []workflow.Code{workflow.CommandNotFound, workflow.NotStuck})}
	if reflect.TypeFor[T]() == reflect.TypeFor[Operation]() { // which is on a command, and can have its result
		r.Answers = []Answer{answer[Settled](200)}
		r.Body.Limit = func(l Limits) int64 { return l.Body + maxOperation }
	}
	return r
}

// withCodes adds to what a route's problems may be.
func withCodes(r Route, codes ...workflow.Code) Route {
	r.Codes = slices.Concat(r.Codes, codes)
	return r
}

// tried is a route of an operation on an instance that can be asked for a dry run, and for one version of it.
func tried(r Route) Route {
	r.Params = slices.Concat(params(dryRun), r.Params, params(atVersion))
	r.Headers = append(slices.Clone(r.Headers), dry)
	return withCodes(r, workflow.VersionConflict)
}

// change is the route of what an operator does that needs no key: the same request
// again does no harm.
func change[T any](method, path string, g Grant, do func(*API, *request, T) error, doc string, codes ...workflow.Code) Route {
	return Route{Section: ofOperator, Method: method, Path: path, Grant: g, handle: done(do), Doc: doc,
		Body: bodyOfOperation[T](), Answers: []Answer{{Status: 204}}, Codes: codes}
}

func changeDead(action string, do func(*API, *request, DeadSelection) (DeadChange, error), doc string) Route {
	return Route{Section: ofOperator, Method: "POST", Path: ops + "/sinks/{sink}/" + action, Grant: Operate, Doc: doc, handle: answered(do),
		Params: params(forAll), Body: bodyOfOperation[DeadSelection](), Answers: []Answer{answer[DeadChange](200)},
		Codes: []workflow.Code{workflow.NotFound, workflow.WorkflowNotFound}}
}

// maxOperation is the maximum body of an operation in bytes, without its result.
const maxOperation = 16 << 10

func bodyOfOperation[T any]() *Body {
	return &Body{Type: reflect.TypeFor[T](), Media: []string{mediaJSON}, Optional: true, Limit: func(Limits) int64 { return maxOperation }}
}

// pageFile is the route of a file of the page for people. There is nothing in it that callers alone may know.
func pageFile(path, file, media, doc string) Route {
	return Route{Section: ofMachines, Method: "GET", Path: path, Grant: Public, handle: page(file, media), AnyQuery: true, Doc: doc,
		Answers: []Answer{{Status: 200, Media: media}}}
}
