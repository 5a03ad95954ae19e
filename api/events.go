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
func (a *API) events(w http.ResponseWriter, r *http.Request, c Caller) error {
	q, err := filtersOf(r, "after", "limit", "workflow", "instance", "business_key", "type", "state", attributePrefix)
	if err != nil {
		return err
	}
	selected, err := a.selectionOf(q)
	if err != nil {
		return err
	}
	limit, err := q.limit()
	if err != nil {
		return err
	}
	start, ok := startingPoint{oldest: true}, true
	if s, given := q["after"]; given {
		start, ok = parseStart(s)
	}
	if !ok {
		return workflow.Errorf(workflow.InvalidRequest, `query parameter "after" is not a position, "start" or "now"`)
	}
	switch media := accepted(r, mediaJSON, mediaEventStream); {
	case media == "":
		return workflow.Errorf(workflow.NotAcceptable, "events are %s or %s", mediaJSON, mediaEventStream)
	case media == mediaJSON || r.Method == http.MethodHead:
		return a.eventPage(w, r, c, start, selected, limit)
	}
	if _, given := q["limit"]; given {
		return workflow.Errorf(workflow.InvalidRequest, `an event stream takes no query parameter "limit"`)
	}
	return a.eventStream(w, r, c, start, selected)
}

// eventPage answers with a piece of the log. With "Prefer: wait=N" it waits for
// a first event.
func (a *API) eventPage(w http.ResponseWriter, r *http.Request, c Caller, start startingPoint, selected selection, limit int) error {
	begin, err := a.from(r.Context(), c.Tenant, start)
	if err != nil {
		return err
	}
	p := &page{selected: selected, limit: limit, last: begin.after, head: begin.head}
	t := a.newTail(c.Tenant, begin)
	defer t.close()
	for !p.full() && !t.caughtUp() {
		b, err := t.next(r.Context())
		if err != nil {
			return err
		}
		p.add(b)
	}
	if wait := preferredWait(r); wait > 0 && len(p.events) == 0 && !p.full() {
		w.Header().Set("Preference-Applied", "wait")
		if err := a.waitForEvent(r, t, p, wait); err != nil {
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
