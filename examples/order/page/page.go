// Package page is a shop's page, and the little backend behind it. A customer orders there, and follows the order live.
//
// The backend places the order and asks Pawl for a ticket: a credential that is good for this one order, for minutes,
// and for what its customer may do. The browser gets the ticket and nothing else, and asks Pawl itself from then on; the
// backend's own API key never leaves it. The backend keeps nothing: whose an order is stands in its number.
//
// It talks to Pawl over HTTP alone, so it can be copied into a program that runs elsewhere. The page then needs Pawl
// under its own address, behind the same proxy.
package page

import (
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"time"
)

// Path is where the page is served.
const Path = "/shop/"

// Config is what the backend needs.
type Config struct {
	// Pawl is the URL of Pawl, such as "http://127.0.0.1:8080".
	Pawl string

	// Key is the backend's API key. It has the grants Grants.
	Key string

	// TicketFor is for how long a ticket is good. Default ten minutes.
	TicketFor time.Duration

	// Log takes what the customer is not told. Default slog.Default().
	Log *slog.Logger
}

// Grants are what the backend's key may do: place orders for its customers, and make tickets for what they may do
// themselves.
const Grants = "act-as:order submit:order/place submit:order/pay submit:order/cancel read:order stream:order"

//go:embed static
var static embed.FS

// files are those that are served, by name, and of which type each is.
var files = map[string]string{
	"index.html": "text/html; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "style.css": "text/css; charset=utf-8",
	"icon.svg": "image/svg+xml",
}

// New is a handler for all that is below Path.
func New(c Config) (http.Handler, error) {
	if c.Pawl == "" || c.Key == "" {
		return nil, errors.New("page: New needs the URL of Pawl and an API key")
	}
	if c.TicketFor == 0 {
		c.TicketFor = 10 * time.Minute
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	p, err := connect(c.Pawl, c.Key)
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	s := &shop{pawl: p, ticketFor: c.TicketFor, log: c.Log}
	mux := http.NewServeMux()
	for name, media := range files {
		text, err := static.ReadFile(path.Join("static", name))
		if err != nil {
			return nil, fmt.Errorf("page: %w", err)
		}
		at := name
		if name == "index.html" {
			at = "{$}"
		}
		mux.HandleFunc("GET "+Path+at, func(w http.ResponseWriter, r *http.Request) {
			beginSession(w, r)
			w.Header().Set("Content-Type", media)
			_, _ = w.Write(text) // who has left reads nothing
		})
	}
	mux.HandleFunc("POST "+Path+"orders", s.placeOrder)
	mux.HandleFunc("POST "+Path+"tickets", s.renewTicket)
	// Nothing of another origin: that page would act with this one's cookie.
	return http.NewCrossOriginProtection().Handler(protect(mux)), nil
}

// policy is what the page may load, send and become. A WebSocket of its own origin is 'self' too.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

func protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}
