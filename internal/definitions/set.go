// Package definitions holds the workflows that a node knows, or a simulation of one.
package definitions

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Set is workflows, each in one or more versions. It does not change once it is
// built.
type Set struct {
	byName map[string][]*workflow.Workflow // the newest first
	replay time.Duration
}

// Build builds every definition. Answers are replayed for as long as replay where a
// workflow does not say it. Its error lists the mistakes of all.
func Build(sources []workflow.Source, replay time.Duration) (*Set, error) {
	s := &Set{byName: map[string][]*workflow.Workflow{}, replay: replay}
	var mistakes []error
	for _, source := range sources {
		w, err := source.Build()
		if err == nil && s.Find(w.Name, w.Version) != nil {
			err = fmt.Errorf("workflow %q version %d is given twice", w.Name, w.Version)
		}
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		s.byName[w.Name] = append(s.byName[w.Name], w)
		slices.SortFunc(s.byName[w.Name], func(a, b *workflow.Workflow) int { return cmp.Compare(b.Version, a.Version) })
	}
	return s, errors.Join(mistakes...)
}

// Find returns a version of a workflow, the newest for version 0, or nil.
func (s *Set) Find(name string, version int) *workflow.Workflow {
	for _, w := range s.byName[name] {
		if version == 0 || w.Version == version {
			return w
		}
	}
	return nil
}

// Versions are those of a workflow, the newest first; none: it is not known.
func (s *Set) Versions(name string) []*workflow.Workflow { return s.byName[name] }

// Names are those of all workflows, in order.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.byName)) }

// Newest are the newest versions of all workflows, by name.
func (s *Set) Newest() (list []*workflow.Workflow) {
	for _, name := range s.Names() {
		list = append(list, s.byName[name][0])
	}
	return list
}

// All are the versions of all workflows, by name.
func (s *Set) All() (list []*workflow.Workflow) {
	for _, name := range s.Names() {
		list = append(list, s.byName[name]...)
	}
	return list
}

// Horizons are how long the keys of a workflow are good for, as its newest version
// says, resolved.
func (s *Set) Horizons(name string) workflow.Horizons {
	var declared workflow.Horizons
	if w := s.Find(name, 0); w != nil {
		declared = w.Horizons
	}
	return declared.Resolve(s.replay)
}

// Routes are who takes messages, by consumer.
func (s *Set) Routes() map[string][]decide.MessageRoute {
	return decide.MessageRoutes(s.Newest(), func(name string) []*workflow.Workflow { return s.byName[name][1:] })
}

// Prepare makes a command ready to be decided; see decide.Prepare. Error:
// WorkflowNotFound, too.
func (s *Set) Prepare(c transitions.Command, newID func() uuid.UUID) (*decide.Prepared, error) {
	versions := s.byName[c.Workflow]
	if len(versions) == 0 {
		return nil, NotFound(c.Workflow)
	}
	if err := decide.CheckKeep(c, s.Horizons(c.Workflow)); err != nil {
		return nil, err
	}
	return decide.Prepare(c, versions[0], newID, versions[1:]...)
}

// NotFound says that there is no workflow of a name.
func NotFound(name string) error {
	return workflow.Errorf(workflow.WorkflowNotFound, "there is no workflow %q", name)
}
