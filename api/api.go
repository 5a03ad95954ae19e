package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"golang.org/x/time/rate"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

// Subprotocol is the WebSocket subprotocol that this package speaks. A client
// that offers none is taken to mean it.
const Subprotocol = stream.Subprotocol

// API is the HTTP interface of one engine. It is an http.Handler.
type API struct {
	engine   *engine.Engine
	cfg      Config
	log      *slog.Logger
	mux      *http.ServeMux
	own      *http.ServeMux // the routes of the program; nil for none
	local    bool           // Identify is Loopback, by default
	streams  *stream.Server
	budget   *budget.Budget // of the memory that callers take
	contract documents
	diagrams *diagrams
	cors     *cors // nil: pages of other origins are not served
	public   publicURL

	tenants, credentials *rates        // nil for no limit
	refusals             *rate.Limiter // of the log's lines about them
}

// New makes the interface of an engine. It starts nothing; see [API.Start]. Its error is a
// mistake in the Config.
func New(e *engine.Engine, c Config) (*API, error) {
	if e == nil {
		return nil, errors.New("api: New needs an engine")
	}
	local := c.Identify == nil // by Loopback
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	a := &API{engine: e, cfg: c, local: local, log: c.Logger, diagrams: newDiagrams(maxDiagrams), budget: budget.New(c.Limits.Memory),
		tenants:     newRates("tenant", c.Limits.Rate, c.Limits.Burst),
		credentials: newRates("credential", c.Limits.CredentialRate, c.Limits.CredentialBurst),
		refusals:    rate.NewLimiter(10, 100)}
	if a.public, err = parsePublicURL(c.PublicURL); err != nil {
		return nil, fmt.Errorf("api: Config.PublicURL: %w", err)
	}
	status := func(r *transitions.Record) ([]byte, error) { return render(statusOf(r)) }
	a.streams = stream.New(e, c.Stream, c.Logger, stream.Wire{Status: status, Judge: a.judged})
	a.mux = a.routes()
	a.contract.routes = Routes()
	if a.own, err = a.ownRoutes(); err != nil {
		return nil, err
	}
	origins := c.Origins
	if own := a.public.origin(); own != "" && !slices.Contains(origins, own) {
		origins = append(slices.Clone(origins), own)
	}
	a.cors = newCORS(origins)
	return a, nil
}

// Memory returns the memory budget of callers: its size and the part in use, in bytes, and the number of refused requests since the start.
// See [Limits].
func (a *API) Memory() (size, held, refused int64) {
	s := a.budget.Stats()
	return s.Size, s.Held, s.Refused
}

// Stop ends every stream: a WebSocket connection is closed with 1001, an event
// stream, a long poll and a wait for a command's end with what they have. It returns when all of their
// goroutines are gone. If ctx ends first, connections are cut off, and the
// context's error is returned, still after all goroutines are gone.
//
// New streams are refused from then on, with ShuttingDown; other requests are
// still served, so stop the http.Server afterwards. Stop may be called again.
func (a *API) Stop(ctx context.Context) error {
	err := a.streams.Stop(ctx)
	a.contract.background.Wait()
	return err
}
