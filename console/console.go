package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/workflow"
)

// DefaultPath is where the console is, unless its Config says otherwise.
const DefaultPath = "/console"

// Config is what a console needs. API and Sessions are required.
type Config struct {
	// API is asked for everything, with the credential of the user.
	API http.Handler
	// Sessions seals what browsers keep.
	Sessions Sessions
	// Path is where the console is: segments of lower-case letters, digits, "-" and "_". Default [DefaultPath].
	Path string
	// Origin is how browsers reach the server, such as "https://example.com". Login requires it for hosts other than this machine. Empty
	// means the host that each request names.
	Origin string
	// Prefix is what a proxy removes from the paths that browsers see, or the API: such as "/pawl", before Path. Default none.
	Prefix string
	// Local disables credentials: every user of this machine is trusted.
	Local bool
	// Login offers to sign in at an identity provider, in addition to entering a credential. Nil disables it.
	Login Login
	// Log takes what operators should know. Default: slog.Default().
	Log *slog.Logger
}

// Sessions seals and opens what a browser keeps; a [session.Sealer] does.
type Sessions interface {
	Seal(ctx context.Context, of session.Session) (text string, err error)
	Open(ctx context.Context, text string) (of session.Session, age time.Duration, err error)
}

// Console serves the pages.
type Console struct {
	Config
	routed string // the path of requests, without Prefix
	mux    *http.ServeMux
}

var goodPath = regexp.MustCompile(`^(/[a-z0-9_-]+)+$`)

// CheckPath refuses what cannot be the path of a console.
func CheckPath(path string) error {
	if !goodPath.MatchString(path) {
		return fmt.Errorf("the path %q is not made of segments of a-z, 0-9, - and _, such as %s", path, DefaultPath)
	}
	return nil
}

// New makes a console. Its error is a mistake in the Config.
func New(c Config) (*Console, error) {
	if c.API == nil || c.Sessions == nil {
		return nil, errors.New("console: New needs an API and Sessions")
	}
	c.Path, c.Log = cmp.Or(c.Path, DefaultPath), cmp.Or(c.Log, slog.Default())
	if err := CheckPath(c.Path); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	routed := c.Path
	c.Path = c.Prefix + c.Path // of links and cookies
	out := &Console{Config: c, routed: routed}
	out.mux = out.routes()
	return out, nil
}

// Routes returns the routes to serve in addition to an API's, by pattern as in [http.ServeMux].
func (c *Console) Routes() map[string]http.Handler {
	pages := c.addPrefix(c.mux)
	return map[string]http.Handler{
		"GET " + c.routed:        http.RedirectHandler(c.Path+"/", http.StatusPermanentRedirect),
		"GET " + c.routed + "/":  pages,
		"POST " + c.routed + "/": pages,
	}
}

// addPrefix has a handler see the path that browsers see.
func (c *Console) addPrefix(h http.Handler) http.Handler {
	if c.Prefix == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := r.WithContext(r.Context()) // a copy
		at := *r.URL
		at.Path = c.Prefix + at.Path
		if at.RawPath != "" {
			at.RawPath = c.Prefix + at.RawPath
		}
		seen.URL = &at
		h.ServeHTTP(w, seen)
	})
}

// handler makes a page, or does what a form asks for. An error is shown; a handler that returns one has written nothing.
type handler = func(*visit) error

func (c *Console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, one := range pages {
		mux.HandleFunc("GET "+c.Path+one.path, c.visited(one.page))
	}
	for _, one := range actions {
		mux.HandleFunc("POST "+c.Path+one.path, c.visited(one.do))
	}
	mux.HandleFunc("GET "+c.Path+"/static/{file}", c.static)
	mux.HandleFunc("GET "+c.Path+"/sign-in", c.signInPage)
	mux.HandleFunc("POST "+c.Path+"/sign-in", c.signIn)
	mux.HandleFunc("GET "+c.Path+"/sign-in/provider", c.leave)
	mux.HandleFunc("GET "+c.Path+"/signed-in", c.signedIn)
	mux.HandleFunc("GET "+c.Path+"/", c.visited(func(*visit) error { return errNoPage }))
	return mux
}

var errNoPage = workflow.Errorf(workflow.NotFound, "there is no such page")

// visited serves those who have signed in.
func (c *Console) visited(serve handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		v := &visit{Console: c, w: w, r: r}
		err := v.enter()
		if err == nil {
			err = serve(v)
		}
		if err != nil {
			v.fail(err)
		}
	}
}

// policy is what a browser may load for a page: what is served here, and nothing that stands in the page itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// protect says to browsers what a page is not. With the policy no-referrer they would not say where a form comes from.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// static serves the style sheet, the script and the icon, without authentication.
func (c *Console) static(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	name := r.PathValue("file")
	file, known := assets[name]
	if !known {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", file.media)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", file.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.body))
}
