package api

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/workflow"
)

// handler serves a request that its route lets through. An error becomes a problem
// document; a handler that returns one has written nothing.
type handler = func(*API, http.ResponseWriter, *request) error

func (a *API) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range Routes() {
		mux.HandleFunc(route.Method+" "+route.Path, a.serve(&route))
	}
	return mux
}

// ServeHTTP serves one request. Every error is a problem document, also for unknown routes.
func (a *API) ServeHTTP(w http.ResponseWriter, given *http.Request) {
	began := time.Now()
	out := &answerWriter{ResponseWriter: w, ctx: given.Context(), control: http.NewResponseController(w),
		timeout: a.cfg.Limits.WriteTime, status: http.StatusOK}
	r, span := identified(out, a.public.within(given)), tracing.None
	defer func() {
		given.Pattern = r.Pattern // for those before us, as if the mux had their request
		out.finish()
		span.End(tracing.Outcome{Status: out.status})
		a.logAccess(out, r, began)
	}()
	defer a.recovered(out, r)
	mux := a.mux
	if a.own != nil && !pawls(r.URL.Path) {
		mux = a.own
	} else {
		protect(out.Header())
		r, span = a.trace(r)
		if a.cors != nil {
			if r = a.cors.let(out, r); a.cors.preflight(out, r, mux) {
				return
			}
		}
	}
	mux.ServeHTTP(&unrouted{answerWriter: out, request: r, api: a}, r)
}

// varyByCaller names the headers that say who calls.
var varyByCaller = strings.Join(append([]string{"Authorization", "Cookie"}, ofCallers...), ", ")

func (a *API) serve(route *Route) http.HandlerFunc {
	varies := len(route.media()) > 1
	return func(w http.ResponseWriter, hr *http.Request) {
		out := routed(w)
		if route.Grant != Public {
			out.Header().Set(headerCacheControl, "private, no-cache")
			out.Header().Add("Vary", varyByCaller)
		}
		if varies {
			out.Header().Add("Vary", "Accept")
		}
		r := &request{Request: hr, route: route, prefix: a.public.prefix}
		if err := a.answer(out, r); err != nil {
			a.fail(out, hr, err)
		}
	}
}

// answer serves a request that its route lets through. It holds memory for it from the beginning, first for an unknown caller. A health
// check holds none: a flood must not make a node look dead.
func (a *API) answer(w *answerWriter, r *request) (err error) {
	if r.route.isHealth() {
		if err := a.let(w.Header(), r); err != nil {
			return err
		}
		return r.route.handle(a, w, r)
	}
	if w.holder, err = a.budget.Open(r.Context(), budget.Share{Key: "arriving", Bytes: a.budget.Part(partArriving)}); err != nil {
		return err
	}
	defer func() {
		if w.holder != nil {
			w.holder.Done()
			w.holder = nil
		}
	}()
	err = a.let(w.Header(), r)
	w.caller = r.caller
	if err != nil {
		return err
	}
	if err := a.hold(w, r); err != nil {
		return err
	}
	return r.asNamed(r.route.handle(a, w, r))
}

func (a *API) nothingHere() error {
	return workflow.Errorf(workflow.NotFound, "there is nothing at this address; what there is, %s shows to people, and %s to programs",
		a.public.prefix+docs, a.public.prefix+atOpenAPI)
}

// unrouted is the writer that the mux is given. A route's handler takes the
// real writer out of it. So whatever is written to this one is an answer of the
// mux's own (no route, another method, a redirect to a tidier path), and becomes
// a problem document. Nothing is redirected: a command that was posted to a
// wrong address must not be posted again to another.
type unrouted struct {
	*answerWriter
	request *http.Request
	api     *API
}

func routed(w http.ResponseWriter) *answerWriter { return w.(*unrouted).answerWriter }

// WriteHeader answers instead of the mux. The header Allow that it has set for
// a 405 stays.
func (u *unrouted) WriteHeader(status int) {
	err := u.api.nothingHere()
	if status == http.StatusMethodNotAllowed {
		err = workflow.Errorf(workflow.MethodNotAllowed, "this address takes %s", u.Header().Get("Allow"))
	}
	u.Header().Del(headerLocation)
	u.api.fail(u.answerWriter, u.request, err)
}

// Write drops the mux's text.
func (u *unrouted) Write(b []byte) (int, error) { return len(b), nil }

// The addresses that say how the node is.
const (
	atHealth = "/healthz"
	atReady  = "/readyz"
)

// ofTheNode are the addresses outside of /v1/ and /docs/.
var ofTheNode = []string{atHealth, atReady, "/metrics", atOpenAPI, atAsyncAPI}

// pawls reports whether an address is Pawl's, now or in a later version. A path is
// as the URL has it, without escapes.
func pawls(path string) bool {
	return path == v1 || path == docs || strings.HasPrefix(path, v1+"/") || strings.HasPrefix(path, docs+"/") ||
		slices.Contains(ofTheNode, path)
}

// ownRoutes is what serves the routes of the program; nil for none. Its error names
// those that can not be.
func (a *API) ownRoutes() (*http.ServeMux, error) {
	routes := a.cfg.Routes
	if len(routes) == 0 {
		return nil, nil
	}
	mux := http.NewServeMux()
	for _, pattern := range slices.Sorted(maps.Keys(routes)) {
		if err := a.mount(mux, pattern, routes[pattern]); err != nil {
			return nil, fmt.Errorf("api: Config.Routes[%q]: %w", pattern, err)
		}
	}
	return mux, nil
}

// mount takes a route. Without authentication it is for loopback hosts, as Pawl's are. The
// mux panics with what is wrong with it.
func (a *API) mount(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	if h == nil {
		return errors.New("there is no handler")
	}
	_, path, _ := strings.Cut(pattern, "/") // method and host are before it
	if pawls("/" + path) {
		return errors.New("the address is Pawl's own: choose one outside of /v1/ and /docs/, /healthz, /readyz, /metrics, " +
			"/openapi.json and /asyncapi.json")
	}
	defer func() {
		if mistake := recover(); mistake != nil {
			err = fmt.Errorf("%v", mistake)
		}
	}()
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		out := routed(w)
		if a.local && !isLoopback(r.Host) {
			a.fail(out, r, errNotLoopback)
			return
		}
		h.ServeHTTP(out, r)
	})
	return nil
}
