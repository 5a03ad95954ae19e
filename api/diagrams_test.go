package api

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl/workflow"
	"github.com/pawlhq/pawl/workflow/diagram"
)

func TestDiagramsAreLaidOutOnce(t *testing.T) {
	t.Parallel()
	d := newDiagrams(maxDiagrams)
	var layouts atomic.Int32
	begun, release := make(chan struct{}), make(chan struct{})
	lay := d.draw
	d.draw = func(w *workflow.Workflow) *diagram.Drawn {
		if layouts.Add(1) == 1 {
			close(begun)
			<-release
		}
		return lay(w)
	}
	one := letters(t, "letter", 1)
	var group sync.WaitGroup
	get := func() {
		if drawn, err := d.of(t.Context(), one); drawn == nil || err != nil {
			t.Errorf("%v, %v", drawn, err)
		}
	}
	group.Go(get)
	<-begun
	for range 10 {
		group.Go(get)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.of(ended, one); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that has ended waits: %v", err)
	}
	close(release)
	group.Wait()
	get()
	if n := layouts.Load(); n != 1 {
		t.Errorf("%d layouts of one workflow", n)
	}
	if _, err := d.of(t.Context(), letters(t, "letter", 2)); err != nil || layouts.Load() != 2 {
		t.Errorf("%d layouts of two workflows, %v", layouts.Load(), err)
	}
}

func TestDiagramsAreBounded(t *testing.T) {
	t.Parallel()
	size := diagram.Draw(letters(t, "letter", 1), diagram.TopDown).Size()
	d := newDiagrams(3*size + size/2)
	var layouts atomic.Int32
	lay := d.draw
	d.draw = func(w *workflow.Workflow) *diagram.Drawn {
		layouts.Add(1)
		return lay(w)
	}
	get := func(version int) {
		if _, err := d.of(t.Context(), letters(t, "letter", version)); err != nil {
			t.Error(err)
		}
		if d.size > d.limit || len(d.byHash) != d.recent.Len() || len(d.byHash) > 3 {
			t.Errorf("%d bytes of %d, %d diagrams", d.size, d.limit, len(d.byHash))
		}
	}
	for version := range 9 {
		get(1)
		get(version + 1)
	}
	if n := layouts.Load(); n != 9 {
		t.Errorf("%d layouts of 9 versions, the first of which is always in use", n)
	}
	get(2)
	if n := layouts.Load(); n != 10 {
		t.Errorf("%d layouts, want 10: the second version was removed", n)
	}
}

func TestDiagrams_PanicIsNotCached(t *testing.T) {
	t.Parallel()
	d := newDiagrams(maxDiagrams)
	lay := d.draw
	d.draw = func(*workflow.Workflow) *diagram.Drawn { panic("broken") }
	w := letters(t, "letter", 1)
	func() {
		defer func() { recover() }()
		_, _ = d.of(t.Context(), w)
	}()
	d.draw = lay
	if drawn, err := d.of(t.Context(), w); drawn == nil || err != nil {
		t.Errorf("%v, %v", drawn, err)
	}
}
