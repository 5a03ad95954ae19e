package api

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// maxScan bounds how many events one answer looks at for those that it selects.
const maxScan = 10_000

// events reads the log: GET /v1/events, as JSON or as an event stream.
func (a *API) events(w http.ResponseWriter, r *request) error {
	selected, err := a.selectionOf(r)
	if err != nil {
		return err
	}
	media, err := r.accepted()
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
func (a *API) eventPage(w http.ResponseWriter, r *request, selected selection) error {
	begin, err := a.from(r.Context(), r.tenant(), r.start("after"))
	if err != nil {
		return err
	}
	p := &page{selected: selected, limit: r.limit(), last: begin.after, head: begin.head}
	t := a.newTail(r.tenant(), begin)
	defer t.close()
	for !p.full() && !t.caughtUp() {
		b, err := t.next(r.Context())
		if err != nil {
			return err
		}
		p.add(b)
	}
	if wait := preferredWait(r.with(headerPrefer)); wait > 0 && len(p.events) == 0 && !p.full() {
		w.Header().Set(headerApplied, "wait")
		if err := a.waitForEvent(r.Request, t, p, wait); err != nil {
			return err
		}
	}
	w.Header().Set("Vary", "Accept")
	return sendJSON(w, http.StatusOK, Events{Events: p.events, NextAfter: p.last, Head: p.head})
}

// waitForEvent waits until the page has something, the time is over or the node
// stops.
func (a *API) waitForEvent(r *http.Request, t *tail, p *page, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	x := &stream{end: cancel}
	if err := a.streams.add(x); err != nil {
		return err
	}
	defer a.streams.remove(x)
	for len(p.events) == 0 && !p.full() {
		b, err := t.next(ctx)
		if err != nil {
			if ctx.Err() != nil && r.Context().Err() == nil {
				return nil
			}
			return err
		}
		p.add(b)
	}
	return nil
}

// page gathers selected events up to a limit, whole transitions only.
type page struct {
	selected selection
	limit    int
	events   []jsontext.Value
	scanned  int
	last     int64 // everything up to here was looked at
	head     int64
	cut      bool // the limit was reached inside of a batch
}

func (p *page) full() bool { return p.cut || len(p.events) >= p.limit || p.scanned >= maxScan }

func (p *page) add(b transitions.Batch) {
	p.head = max(p.head, b.Head)
	for i := range b.Events {
		e := &b.Events[i]
		if len(p.events) >= p.limit && e.Position != p.last {
			p.cut = true
			return
		}
		p.last = e.Position
		p.scanned++
		if p.selected.Takes(&e.Event) {
			p.events = append(p.events, e.CloudEvent)
		}
	}
	p.last = b.Last
}
