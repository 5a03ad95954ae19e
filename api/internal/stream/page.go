package stream

import (
	"context"
	"iter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/transitions"
)

// selection is what a reader of the log wants to see.
type selection struct{ transitions.EventFilter }

// from yields the selected events, each with whether another selected one of
// the same transition follows. A reader must not take the position of such an
// event for the place to resume after: the rest of the transition would be lost.
func (s *selection) from(events []transitions.Logged) iter.Seq2[*transitions.Logged, bool] {
	return func(yield func(*transitions.Logged, bool) bool) {
		var held *transitions.Logged
		for i := range events {
			e := &events[i]
			if !s.Takes(&e.Event) {
				continue
			}
			if held != nil && !yield(held, held.Position == e.Position) {
				return
			}
			held = e
		}
		if held != nil {
			yield(held, false)
		}
	}
}

// Check refuses what no event can have, and, as lists do, a workflow that this
// node does not know. Errors: InvalidRequest, WorkflowNotFound.
func (srv *Server) Check(f *transitions.EventFilter) error {
	if f.Workflow == "" {
		return f.Check(nil)
	}
	if _, err := srv.engine.Read().Workflow(f.Workflow, 0); err != nil {
		return err
	}
	return f.Check(srv.engine.Read().Versions(f.Workflow))
}

// maxScan bounds how many events one answer looks at for those that it selects.
const maxScan = 10_000

// Page returns the next piece of the log from a place. Where nothing of it is selected
// it waits for a first event as long as it may, and reports that it did. The holder has memory for a page until the request is done,
// but not while it waits.
func (srv *Server) Page(ctx context.Context, tenant string, start Start, f transitions.EventFilter,
	limit int, wait time.Duration, holder *budget.Holder) (*Page, bool, error) {
	begin, err := srv.from(ctx, tenant, start)
	if err != nil {
		return nil, false, err
	}
	if err := holder.Take(ctx, budget.Page); err != nil {
		return nil, false, err
	}
	p := &Page{selected: selection{f}, limit: limit, Last: begin.after, Head: begin.head}
	t := srv.newTail(tenant, begin, nil)
	defer t.close()
	for !p.full() && !t.caughtUp() {
		b, err := t.next(ctx)
		if err != nil {
			return nil, false, err
		}
		p.add(b)
	}
	if wait == 0 || len(p.Events) > 0 || p.full() {
		return p, false, nil
	}
	holder.Free(budget.Page)
	return p, true, srv.waitForEvent(ctx, t, p, wait)
}

// waitForEvent waits until the page has something, the time is over or the node
// stops.
func (srv *Server) waitForEvent(ctx context.Context, t *tail, p *Page, wait time.Duration) error {
	limited, done, err := srv.Wait(ctx, wait)
	if err != nil {
		return err
	}
	defer done()
	for len(p.Events) == 0 && !p.full() {
		b, err := t.next(limited)
		if err != nil {
			if limited.Err() != nil && ctx.Err() == nil {
				return nil
			}
			return err
		}
		p.add(b)
	}
	return nil
}

// Page gathers selected events up to a limit, whole transitions only.
type Page struct {
	selected selection
	limit    int
	Events   []jsontext.Value
	scanned  int
	bytes    int   // of Events
	Last     int64 // everything up to here was looked at
	Head     int64
	cut      bool // the limit was reached inside of a batch
}

func (p *Page) full() bool { return p.cut || p.ends() || p.scanned >= maxScan }

// ends reports whether the page has as many events as it may, or as many bytes.
func (p *Page) ends() bool { return len(p.Events) >= p.limit || p.bytes >= transitions.PageBytes }

func (p *Page) add(b transitions.Batch) {
	p.Head = max(p.Head, b.Head)
	for i := range b.Events {
		e := &b.Events[i]
		if p.ends() && e.Position != p.Last {
			p.cut = true
			return
		}
		p.Last = e.Position
		p.scanned++
		if p.selected.Takes(&e.Event) {
			p.Events = append(p.Events, e.CloudEvent)
			p.bytes += len(e.CloudEvent)
		}
	}
	p.Last = b.Last
}
