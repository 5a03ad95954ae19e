package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// cors serves pages of listed origins (the Fetch standard, section 3.2). The permitted methods and headers come from the table of routes.
// Credentials that a browser adds by itself are never permitted, so a page sends its own.
type cors struct {
	origins []string
	routes  map[string]*Route // by the pattern of the mux
	methods map[string][]string
	exposed string
}

// Headers of the Fetch standard.
const (
	headerOrigin         = "Origin"
	headerAskedMethod    = "Access-Control-Request-Method"
	headerAllowOrigin    = "Access-Control-Allow-Origin"
	headerAllowMethods   = "Access-Control-Allow-Methods"
	headerAllowHeaders   = "Access-Control-Allow-Headers"
	headerExposeHeaders  = "Access-Control-Expose-Headers"
	headerPreflightCache = "Access-Control-Max-Age"
)

// preflightSeconds is for how long a browser keeps the answer to a preflight.
const preflightSeconds = "600"

// CheckOrigins refuses what is no origin as [Config] has it.
func CheckOrigins(origins []string) error {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(u.Host, "*@") ||
			origin != u.Scheme+"://"+u.Host || origin != strings.ToLower(origin) {
			return fmt.Errorf("%q is not an origin such as https://shop.example.com, in small letters and without a path", origin)
		}
	}
	return nil
}

// newCORS returns nil for no origins.
func newCORS(origins []string) *cors {
	if len(origins) == 0 {
		return nil
	}
	c := &cors{origins: origins, routes: map[string]*Route{}, methods: map[string][]string{}}
	exposed := AnswerHeaders()
	for _, r := range Routes() {
		c.routes[r.Method+" "+r.Path] = &r
		c.methods[r.Path] = append(c.methods[r.Path], r.Method)
		exposed = append(exposed, r.Headers...)
	}
	var names []string // of the headers that a page may read
	for _, h := range exposed {
		if !slices.Contains(names, h.Name) && !strings.HasPrefix(h.Name, "Access-Control-") {
			names = append(names, h.Name)
		}
	}
	c.exposed = strings.Join(names, ", ")
	return c
}

// let prepares the answer to a request of a page. If its origin is listed, the request continues as one of the same origin, so that the
// checks of origins, also for WebSockets, accept it.
func (c *cors) let(w http.ResponseWriter, r *http.Request) *http.Request {
	h := w.Header()
	h.Add("Vary", headerOrigin)
	origin := r.Header[headerOrigin]
	if len(origin) != 1 || !slices.Contains(c.origins, origin[0]) {
		return r
	}
	h.Set(headerAllowOrigin, origin[0])
	h.Set(headerExposeHeaders, c.exposed)
	own := r.WithContext(r.Context()) // a copy
	own.Header = r.Header.Clone()
	own.Header.Del(headerOrigin)
	own.Header.Del("Sec-Fetch-Site")
	return own
}

// preflight answers a preflight request for a listed origin. It returns false for any other request.
func (c *cors) preflight(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) bool {
	asked := r.Header.Get(headerAskedMethod)
	if r.Method != http.MethodOptions || asked == "" || w.Header().Get(headerAllowOrigin) == "" {
		return false
	}
	_, pattern := mux.Handler(&http.Request{Method: asked, URL: r.URL, Host: r.Host})
	route := c.routes[pattern]
	if route == nil {
		return false
	}
	h := w.Header()
	h.Del(headerExposeHeaders)
	h.Add("Vary", headerAskedMethod)
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set(headerAllowMethods, strings.Join(c.methods[route.Path], ", "))
	h.Set(headerAllowHeaders, strings.Join(route.takes(), ", "))
	h.Set(headerPreflightCache, preflightSeconds)
	w.WriteHeader(http.StatusNoContent)
	return true
}

// takes are the headers of a request that mean something.
func (r *Route) takes() []string {
	names := []string{"Authorization", "Accept", headerRequestID, headerTraceparent, headerTracestate}
	if r.Body != nil {
		names = append(names, "Content-Type")
	}
	for _, p := range r.Params {
		if p.In == InHeader && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}
