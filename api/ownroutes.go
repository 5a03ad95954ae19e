package api

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// pawls reports whether an address is Pawl's, now or in a later version. A path is
// as the URL has it, without escapes.
func pawls(path string) bool {
	return path == "/v1" || strings.HasPrefix(path, "/v1/") || path == "/healthz" || path == "/readyz" || path == "/metrics"
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

// mount takes a route. Without authentication it is for loopback hosts, as Pawl's are. The mux panics with what is wrong with it.
func (a *API) mount(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	if h == nil {
		return errors.New("there is no handler")
	}
	_, path, _ := strings.Cut(pattern, "/") // method and host are before it
	if pawls("/" + path) {
		return errors.New("the address is Pawl's own: choose one outside of /v1/, /healthz, /readyz and /metrics")
	}
	defer func() {
		if mistake := recover(); mistake != nil {
			err = fmt.Errorf("%v", mistake)
		}
	}()
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		w = routed(w)
		if a.local && !isLoopback(r.Host) {
			a.fail(w, r, errNotLoopback)
			return
		}
		h.ServeHTTP(w, r)
	})
	return nil
}
