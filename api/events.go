package api

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// events reads the log: GET /v1/events, as JSON or as an event stream.
func (a *API) events(w http.ResponseWriter, r *request) error {
	selected := transitions.EventFilter{Workflow: r.text("workflow"), Instance: r.id("instance"), BusinessKey: r.text("business_key"),
		Attributes: r.attributes(), Types: r.texts("type"), States: r.states()}
	if err := a.streams.Check(&selected); err != nil {
		return err
	}
	media, err := r.accepted(func(g Grant) error { return a.may(r.Context(), &r.caller, g, r.about()) })
	switch {
	case err != nil:
		return err
	case media == mediaJSON || r.Method == http.MethodHead:
		return a.eventPage(w, r, selected)
	case r.given("limit"):
		return workflow.Errorf(workflow.InvalidRequest, `an event stream takes no query parameter "limit"`)
	}
	return a.eventStream(w, r, selected)
}

// eventPage answers with a piece of the log. With "Prefer: wait=N" it waits for
// a first event.
func (a *API) eventPage(w http.ResponseWriter, r *request, f transitions.EventFilter) error {
	page, waited, err := a.streams.Page(r.Context(), r.tenant(), r.start("after"), f, r.limit(), preferredWait(r.with(headerPrefer), a.cfg.Limits.Wait),
		r.holder)
	if err != nil {
		return err
	}
	if waited {
		if err := r.stillHolds(w.Header()); err != nil {
			return err
		}
		w.Header().Set(headerApplied, "wait")
	}
	return sendJSON(w, http.StatusOK, wire.Events{Events: page.Events, NextAfter: page.Last, Head: page.Head})
}

// eventStream answers with the log as server-sent events, from after the last one that
// the caller has.
func (a *API) eventStream(w http.ResponseWriter, r *request, f transitions.EventFilter) error {
	start := r.start("after")
	id, err := single(r.with(headerLastEventID), headerLastEventID)
	if err != nil {
		return err
	}
	if id != "" {
		var ok bool
		if start, ok = stream.ParseStart(id); !ok || id == "now" {
			return workflow.Errorf(workflow.InvalidRequest, "Last-Event-ID is not a position")
		}
	}
	t := r.bounded()
	defer t.done()
	return a.streams.Log(w, r.Request, r.tenant(), start, f, r.holder)
}

// webSocket follows the log and commands: GET /v1/stream.
func (a *API) webSocket(w http.ResponseWriter, r *request) error {
	t := r.bounded()
	defer t.done()
	return a.streams.WebSocket(w, r.Request, stream.Peer{
		Tenant: r.tenant(),
		May: func(ctx context.Context, ask stream.Ask) error {
			g := r.route.needs(ask.Operation)
			switch ask.Operation {
			case stream.Subscribe:
				f := &ask.Filter
				return a.may(ctx, &r.caller, g, auth.Target{Workflow: f.Workflow, BusinessKey: f.BusinessKey, Instance: f.Instance})
			case stream.Watch:
				return a.mayAbout(ctx, &r.caller, g, ask.Command)
			}
			return mayAny(&r.caller, g)
		},
		Renew:  func(ctx context.Context, credential string) (time.Time, error) { return a.renew(ctx, r, t, credential) },
		Refuse: func(err error) { a.fail(w, r.Request, err) },
		Holder: r.holder,
	})
}
