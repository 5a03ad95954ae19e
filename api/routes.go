package api

import (
	"net/http"

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

func (a *API) serve(route *Route) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		w = routed(w)
		r := &request{Request: hr, route: route}
		err := a.let(r)
		if err == nil {
			err = route.handle(a, w, r)
		}
		if err != nil {
			a.fail(w, hr, err)
		}
	}
}

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
