package api

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

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
		drawn, err := d.of(t.Context(), one)
		assert.Truef(t, drawn != nil && err == nil, "%v, %v", drawn, err)
	}
	group.Go(get)
	<-begun
	for range 10 {
		group.Go(get)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.of(ended, one)
	assert.ErrorIs(t, err, context.Canceled, "a request that has ended waits")
	close(release)
	group.Wait()
	get()
	assert.Equal(t, int32(1), layouts.Load(), "layouts of one workflow")
	_, err = d.of(t.Context(), letters(t, "letter", 2))
	assert.Truef(t, err == nil && layouts.Load() == 2, "%d layouts of two workflows, %v", layouts.Load(), err)
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
		_, err := d.of(t.Context(), letters(t, "letter", version))
		assert.NoError(t, err)
		assert.Truef(t, d.size <= d.limit && len(d.byHash) == d.recent.Len() && len(d.byHash) <= 3,
			"%d bytes of %d, %d diagrams", d.size, d.limit, len(d.byHash))
	}
	for version := range 9 {
		get(1)
		get(version + 1)
	}
	assert.Equal(t, int32(9), layouts.Load(), "layouts of 9 versions, the first of which is always in use")
	get(2)
	assert.Equal(t, int32(10), layouts.Load(), "layouts, want 10: the second version was removed")
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
	drawn, err := d.of(t.Context(), w)
	assert.Truef(t, drawn != nil && err == nil, "%v, %v", drawn, err)
}
