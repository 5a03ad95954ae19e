// Package console serves web pages for operators: they find instances, see why one does not move, and repair it. The pages are HTML with a
// style sheet and one small script.
//
// The console calls the API in the same process with the credential of its user, and has no other access to the engine or the database. It
// checks rights only to decide which buttons it shows.
//
// A page is a GET without side effects, and its address has all parameters. A change is a POST of a form: from a page of the same origin,
// with the CSRF token of the session and an idempotency key that was created with the form, so that a double click has one effect. It
// redirects to a page that shows the effect.
//
// A page names the event streams that report its changes (data-live), and an interval for polling parts that no stream reports
// (data-poll). The script then requests the page again and replaces the parts that differ. Everything else works without it.
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

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/workflow"
)

// DefaultPath is the default path of the console.
const DefaultPath = "/console"

// Config configures a Console. API and Sessions are required.
type Config struct {
	// API serves all data, with the credential of the user.
	API http.Handler
	// Sessions seals the content of cookies.
	Sessions Sessions
	// Path is the path of the console: segments of lower-case letters, digits, "-" and "_". Defaults to [DefaultPath].
	Path string
	// Origin is how browsers reach the server, such as "https://example.com". Login requires it for hosts other than this machine. Empty
	// means the host of each request.
	Origin string
	// Prefix is the part of the paths before Path that a proxy or the API removes, such as "/pawl". Defaults to none.
	Prefix string
	// Local disables credentials: every user of this machine is trusted.
	Local bool
	// Login adds signing in at an identity provider. Nil disables it.
	Login Login
	// Log defaults to slog.Default().
	Log *slog.Logger
}

// Sessions seals and opens the content of cookies; a [session.Sealer] does.
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

// CheckPath validates the path of a console.
func CheckPath(path string) error {
	if !goodPath.MatchString(path) {
		return fmt.Errorf("the path %q is not a path of segments of a-z, 0-9, - and _, such as %s", path, DefaultPath)
	}
	return nil
}

// New returns a console. Errors are configuration errors.
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
	mux := http.NewServeMux()
	for _, p := range pages {
		mux.HandleFunc("GET "+out.Path+p.path, out.signedIn(p.page))
	}
	for _, a := range actions {
		mux.HandleFunc("POST "+out.Path+a.path, out.signedIn(a.do))
	}
	mux.HandleFunc("GET "+out.Path+"/static/{file}", out.static)
	mux.HandleFunc("GET "+out.Path+"/sign-in", out.signInHandler((*visit).signInForm))
	mux.HandleFunc("POST "+out.Path+"/sign-in", out.signInHandler((*visit).signIn))
	mux.HandleFunc("GET "+out.Path+"/sign-in/provider", out.signInHandler((*visit).beginLogin))
	mux.HandleFunc("GET "+out.Path+"/signed-in", out.signInHandler((*visit).finishLogin))
	mux.HandleFunc("GET "+out.Path+"/", out.signedIn(func(*visit) error { return errNoPage }))
	out.mux = mux
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

// addPrefix restores the path that browsers see.
func (c *Console) addPrefix(h http.Handler) http.Handler {
	if c.Prefix == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(r.Context()) // a copy
		u := *r.URL
		u.Path = c.Prefix + u.Path
		if u.RawPath != "" {
			u.RawPath = c.Prefix + u.RawPath
		}
		r.URL = &u
		h.ServeHTTP(w, r)
	})
}

// handler serves a page or a form. A handler that returns an error has written nothing.
type handler = func(*visit) error

var errNoPage = workflow.Errorf(workflow.NotFound, "there is no such page")

// signedIn serves users who have signed in.
func (c *Console) signedIn(serve handler) http.HandlerFunc {
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

// policy limits a page to files of this server, without inline styles and scripts.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// protect sets security headers. With the policy no-referrer browsers would not report the origin of forms.
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

// pages maps paths below the console's to the handlers of pages.
var pages = []struct {
	path string
	page handler
}{
	{"/{$}", (*visit).overview},
	{"/find", (*visit).find},
	{"/instances", (*visit).instances},
	{"/instances/{id}", (*visit).instance},
	{"/instances/{id}/diagram", (*visit).instanceDiagram},
	{"/instances/{id}/data", (*visit).instanceData},
	{"/instances/{id}/do/{transition}", (*visit).transitionForm},
	{"/instances/{id}/{action}", (*visit).pauseForm},
	{"/bulk", (*visit).bulkForm},
	{"/workflows", (*visit).workflows},
	{"/workflows/{workflow}", (*visit).workflow},
	{"/workflows/{workflow}/diagram", (*visit).workflowDiagram},
	{"/workflows/{workflow}/do/{transition}", (*visit).transitionForm},
	{"/workflows/{workflow}/{action}", (*visit).pauseWorkflowForm},
	{"/migrations", listing[api.MigrationList]("migrations", "Migrations", "/v1/ops/migrations")},
	{"/migrations/new", (*visit).migrationForm},
	{"/migrations/{migration}/{action}", (*visit).stopMigrationForm},
	{"/commands", (*visit).commands},
	{"/stuck", listing[api.CommandPage]("stuck", "Stuck commands", "/v1/ops/stuck", "workflow", "instance", "business_key", "cursor")},
	{"/stuck/{action}", (*visit).settleForm},
	{"/paused", listing[api.PausedList]("paused", "Paused", "/v1/ops/paused", "workflow", "cursor")},
	{"/sinks", listing[api.SinkList]("sinks", "Sinks", "/v1/ops/sinks")},
	{"/sinks/{sink}", (*visit).sink},
	{"/sinks/{sink}/{action}", (*visit).sinkForm},
	{"/messages", listing[api.DeadMessagePage]("messages", "Dead messages", "/v1/ops/inbox",
		"consumer", "status", "workflow", "business_key", "cursor")},
	{"/messages/body", (*visit).messageBody},
	{"/messages/{action}", (*visit).messageForm},
	{"/log", (*visit).log},
	{"/keys", listing[api.APIKeyPage]("keys", "API keys", "/v1/keys", "cursor")},
	{"/keys/new", (*visit).newKeyForm},
	{"/keys/{key}/{action}", (*visit).keyForm},
	{"/me", (*visit).account},
	{"/live", (*visit).live},
}

// actions maps the paths of forms to their handlers.
var actions = []struct {
	path string
	do   handler
}{
	{"/sign-out", (*visit).signOut},
	{"/instances/{id}/do/{transition}", (*visit).transition},
	{"/instances/{id}/{action}", (*visit).pause},
	{"/bulk", (*visit).bulk},
	{"/workflows/{workflow}/do/{transition}", (*visit).transition},
	{"/workflows/{workflow}/{action}", (*visit).pauseWorkflow},
	{"/migrations/new", (*visit).startMigration},
	{"/migrations/{migration}/{action}", (*visit).stopMigration},
	{"/commands/cancel", (*visit).cancelCommand},
	{"/stuck/{action}", (*visit).settle},
	{"/sinks/{sink}/{action}", (*visit).changeSink},
	{"/messages/{action}", (*visit).changeMessage},
	{"/keys/new", (*visit).newKey},
	{"/keys/{key}/{action}", (*visit).changeKey},
}
