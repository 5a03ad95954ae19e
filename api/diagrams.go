package api

import (
	"container/list"
	"context"
	"sync"

	"github.com/pawlhq/pawl/workflow"
	"github.com/pawlhq/pawl/workflow/diagram"
)

// maxDiagrams bounds the memory of the cached diagrams, in bytes.
const maxDiagrams = 16 << 20

// diagrams caches the layouts of workflows by the hash of their definition. Concurrent requests for one workflow wait for one
// layout, and one layout is computed at a time. The least recently used ones are removed.
type diagrams struct {
	limit int
	draw  func(*workflow.Workflow) *diagram.Drawn

	computing chan struct{} // holds a token while a layout is computed

	mu     sync.Mutex
	size   int
	byHash map[string]*list.Element // of *cachedDiagram
	recent *list.List               // the most recently used first
}

type cachedDiagram struct {
	hash  string
	ready chan struct{} // closed when drawn is set
	drawn *diagram.Drawn
}

func newDiagrams(limit int) *diagrams {
	return &diagrams{limit: limit, byHash: map[string]*list.Element{}, recent: list.New(), computing: make(chan struct{}, 1),
		draw: func(w *workflow.Workflow) *diagram.Drawn { return diagram.Draw(w, diagram.TopDown) }}
}

// of returns the layout of a workflow. The end of a request does not end a layout that was begun.
func (d *diagrams) of(ctx context.Context, w *workflow.Workflow) (*diagram.Drawn, error) {
	d.mu.Lock()
	element := d.byHash[w.Hash]
	if element == nil {
		element = d.recent.PushFront(&cachedDiagram{hash: w.Hash, ready: make(chan struct{})})
		d.byHash[w.Hash] = element
		d.mu.Unlock()
		d.compute(element, w)
	} else {
		d.recent.MoveToFront(element)
		d.mu.Unlock()
	}
	c := element.Value.(*cachedDiagram)
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.drawn == nil {
		return nil, workflow.Errorf(workflow.Internal, "the diagram cannot be drawn")
	}
	return c.drawn, nil
}

func (d *diagrams) compute(element *list.Element, w *workflow.Workflow) {
	c := element.Value.(*cachedDiagram)
	d.computing <- struct{}{}
	defer func() {
		<-d.computing
		d.mu.Lock()
		defer d.mu.Unlock()
		close(c.ready)
		if c.drawn == nil {
			d.remove(element)
			return
		}
		d.size += c.drawn.Size()
		for last := d.recent.Back(); d.size > d.limit && last != nil; {
			previous := last.Prev()
			if last.Value.(*cachedDiagram).drawn != nil {
				d.remove(last)
			}
			last = previous
		}
	}()
	c.drawn = d.draw(w)
}

// remove forgets a diagram. The caller holds mu.
func (d *diagrams) remove(element *list.Element) {
	c := d.recent.Remove(element).(*cachedDiagram)
	delete(d.byHash, c.hash)
	if c.drawn != nil {
		d.size -= c.drawn.Size()
	}
}
