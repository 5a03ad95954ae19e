package api

import (
	"net/http"

	"github.com/pawlhq/pawl/workflow"
)

// handler serves a request of a known caller. An error becomes a problem
// document; a handler that returns one has written nothing.
type handler func(w http.ResponseWriter, r *http.Request, c Caller) error

func (a *API) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, h := range map[string]handler{
		"POST /v1/workflows/{workflow}/{transition}":                     a.create,
		"POST /v1/workflows/{workflow}/keys/{business_key}/{transition}": a.transitionByKey,
		"POST /v1/instances/{id}/{transition}":                           a.transition,
		"POST /v1/commands":                                              a.bulk,
		"GET /v1/commands/{scope}/{key...}":                              a.commandStatus,
		"DELETE /v1/commands/{scope}/{key...}":                           a.cancelCommand,
		"GET /v1/commands/{scope}":                                       a.nothingHere,
		"DELETE /v1/commands/{scope}":                                    a.nothingHere,

		"GET /v1/instances":                  a.instances,
		"GET /v1/counts":                     a.counts,
		"GET /v1/instances/{id}":             a.instance,
		"GET /v1/instances/{id}/history":     a.history,
		"GET /v1/instances/{id}/transitions": a.options,
		"GET /v1/instances/{id}/diagram":     a.instanceDiagram,

		"GET /v1/workflows":                                a.workflows,
		"GET /v1/workflows/{workflow}":                     a.workflow,
		"GET /v1/workflows/{workflow}/diagram":             a.workflowDiagram,
		"GET /v1/workflows/{workflow}/keys/{business_key}": a.instanceByKey,

		"GET /v1/workflows/{workflow}/keys/{business_key}/history":     a.history,
		"GET /v1/workflows/{workflow}/keys/{business_key}/transitions": a.options,
		"GET /v1/workflows/{workflow}/keys/{business_key}/diagram":     a.instanceDiagram,

		"GET /v1/events": a.events,
		"GET /v1/stream": a.stream,

		"GET /v1/ops/verify":                   operators(a.verify),
		"GET /v1/ops/stuck":                    operators(a.stuck),
		"GET /v1/ops/keys":                     operators(a.keys),
		"POST /v1/ops/commands/{action}":       operators(a.operateCommand),
		"GET /v1/ops/instances/{id}":           operators(a.whole),
		"POST /v1/ops/instances/{id}/{action}": operators(a.operateInstance),

		"GET /v1/ops/workflows/{workflow}/keys/{business_key}":           operators(a.whole),
		"POST /v1/ops/workflows/{workflow}/keys/{business_key}/{action}": operators(a.operateInstance),

		"GET /v1/ops/paused":               operators(a.paused),
		"PUT /v1/ops/paused/{workflow}":    operators(a.pauseWorkflow),
		"DELETE /v1/ops/paused/{workflow}": operators(a.resumeWorkflow),

		"GET /v1/ops/inbox":           operators(a.deadMessages),
		"GET /v1/ops/inbox/body":      operators(a.deadMessageBody),
		"POST /v1/ops/inbox/{action}": operators(a.operateMessage),

		"GET /v1/ops/sinks":                  operators(a.sinks),
		"GET /v1/ops/sinks/{sink}":           operators(a.sink),
		"GET /v1/ops/sinks/{sink}/dead":      operators(a.deadLetters),
		"POST /v1/ops/sinks/{sink}/{action}": operators(a.operateSink),

		"GET /v1/ops/retention": a.retention,
		"GET /metrics":          a.metrics,
	} {
		mux.HandleFunc(pattern, a.serve(h))
	}
	mux.HandleFunc("POST /v1/inbox/{consumer}", a.serveAnyone(a.receive)) // the signature says who sends
	mux.HandleFunc("GET /healthz", a.serveAnyone(a.healthy))
	mux.HandleFunc("GET /readyz", a.serveAnyone(a.ready))
	return mux
}

// ServeHTTP serves one request. Every error is a problem document, also where
// no route takes the request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer a.recovered(w, r)
	mux := a.mux
	if a.own != nil && !pawls(r.URL.Path) {
		mux = a.own
	}
	mux.ServeHTTP(&unrouted{ResponseWriter: w, request: r, api: a}, r)
}

func (a *API) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w = routed(w)
		err := knownHeaders(r)
		var c Caller
		if err == nil {
			c, err = a.cfg.Identify(r)
		}
		if err == nil {
			err = h(w, r, c)
		}
		if err != nil {
			a.fail(w, r, err)
		}
	}
}

// operators lets only operators to a handler.
func operators(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, c Caller) error {
		if err := c.operates(); err != nil {
			return err
		}
		return h(w, r, c)
	}
}

func (a *API) serveAnyone(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w = routed(w)
		if err := h(w, r); err != nil {
			a.fail(w, r, err)
		}
	}
}

// nothingHere keeps the mux from redirecting to the address with a slash.
func (a *API) nothingHere(http.ResponseWriter, *http.Request, Caller) error { return errNothingHere }

var errNothingHere = workflow.Errorf(workflow.NotFound, "there is nothing at this address")

// unrouted is the writer that the mux is given. A route's handler takes the
// real writer out of it. So whatever is written to this one is an answer of the
// mux's own (no route, another method, a redirect to a tidier path), and becomes
// a problem document. Nothing is redirected: a command that was posted to a
// wrong address must not be posted again to another.
type unrouted struct {
	http.ResponseWriter
	request *http.Request
	api     *API
}

func routed(w http.ResponseWriter) http.ResponseWriter { return w.(*unrouted).ResponseWriter }

// WriteHeader answers instead of the mux. The header Allow that it has set for
// a 405 stays.
func (u *unrouted) WriteHeader(status int) {
	var err error = errNothingHere
	if status == http.StatusMethodNotAllowed {
		err = workflow.Errorf(workflow.MethodNotAllowed, "this address takes %s", u.Header().Get("Allow"))
	}
	u.Header().Del("Location")
	u.api.fail(u.ResponseWriter, u.request, err)
}

// Write drops the mux's text.
func (u *unrouted) Write(b []byte) (int, error) { return len(b), nil }
