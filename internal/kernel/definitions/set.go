// Package definitions holds the workflows that a node knows, or a simulation of one.
package definitions

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Set is a set of workflows, each in one or more versions. After it is built only the default versions change. It is safe for concurrent
// use.
type Set struct {
	byName map[string][]*workflow.Workflow  // the newest first
	plans  map[string][]*workflow.Migration // by workflow
	replay time.Duration
	begun  atomic.Pointer[begun]
}

// begun is the set with the version first that new instances begin with.
type begun struct {
	byName map[string][]*workflow.Workflow
	routes map[string][]decide.MessageRoute // of messages, by consumer
}

// Build builds every definition. Answers are replayed for as long as replay where a
// workflow does not say it. Its error lists the mistakes of all.
func Build(sources []workflow.Source, replay time.Duration) (*Set, error) {
	s := &Set{byName: map[string][]*workflow.Workflow{}, plans: map[string][]*workflow.Migration{}, replay: replay}
	var mistakes []error
	for _, source := range sources {
		w, err := source.Build()
		if err == nil && slices.ContainsFunc(s.byName[w.Name], func(other *workflow.Workflow) bool { return other.Version == w.Version }) {
			err = fmt.Errorf("workflow %q version %d is given twice", w.Name, w.Version)
		}
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		s.byName[w.Name] = append(s.byName[w.Name], w)
		slices.SortFunc(s.byName[w.Name], func(a, b *workflow.Workflow) int { return cmp.Compare(b.Version, a.Version) })
	}
	for _, name := range s.Names() {
		mistakes = append(mistakes, s.plan(name))
	}
	if errors.Join(mistakes...) == nil {
		s.Begin(nil)
	}
	return s, errors.Join(mistakes...)
}

// plan checks the plans between the versions of a workflow. One from a version that is not given is of no use, and no mistake.
func (s *Set) plan(name string) error {
	var mistakes []error
	for _, to := range s.byName[name] {
		for _, from := range s.byName[name] {
			m, err := workflow.MigrationOf(from, to)
			if mistakes = append(mistakes, err); m != nil {
				s.plans[name] = append(s.plans[name], m)
			}
		}
	}
	return errors.Join(mistakes...)
}

// Plans are all plans, by workflow.
func (s *Set) Plans() (list []*workflow.Migration) {
	for _, name := range s.Names() {
		list = append(list, s.plans[name]...)
	}
	return list
}

// Migrations are the plans by which instances of a workflow come to a version, of all versions that are known.
func (s *Set) Migrations(name string, to int) (list []*workflow.Migration) {
	for _, m := range s.plans[name] {
		if m.To.Version == to {
			list = append(list, m)
		}
	}
	return list
}

// Begin says with which version new instances of workflows begin: the newest that is known here,
// and not newer than the one that is given for its name, if one is.
func (s *Set) Begin(versions map[string]int) {
	b := &begun{byName: s.order(versions)}
	var first []*workflow.Workflow
	for _, name := range s.Names() {
		first = append(first, b.byName[name][0])
	}
	b.routes = decide.MessageRoutes(first, func(name string) []*workflow.Workflow { return b.byName[name][1:] })
	s.begun.Store(b)
}

// Begun reports whether new instances begin with these versions already.
func (s *Set) Begun(versions map[string]int) bool {
	same := func(a, b []*workflow.Workflow) bool { return a[0] == b[0] }
	return maps.EqualFunc(s.order(versions), s.begun.Load().byName, same)
}

// Begins lists the versions that new instances of workflows begin with: the name, a space and the version.
func (s *Set) Begins() []string {
	list := []string{}
	for _, w := range s.Newest() {
		list = append(list, fmt.Sprint(w.Name, " ", w.Version))
	}
	return list
}

// order is, by name, the versions of each workflow, the one first that new instances begin with.
func (s *Set) order(versions map[string]int) map[string][]*workflow.Workflow {
	byName := maps.Clone(s.byName)
	for name, most := range versions {
		if list := byName[name]; list != nil {
			byName[name] = firstUpTo(list, most)
		}
	}
	return byName
}

// Behind reports whether a newer version of the workflow is known elsewhere than here; of "", of any workflow that is known here.
func (s *Set) Behind(name string, elsewhere map[string]int) bool {
	for known, list := range s.byName {
		if (name == "" || name == known) && list[0].Version < elsewhere[known] {
			return true
		}
	}
	return false
}

// firstUpTo is the list with the newest version first that is not newer than most, or with the
// oldest where all are.
func firstUpTo(list []*workflow.Workflow, most int) []*workflow.Workflow {
	i := slices.IndexFunc(list, func(w *workflow.Workflow) bool { return w.Version <= most })
	if i < 0 {
		i = len(list) - 1
	}
	return append([]*workflow.Workflow{list[i]}, slices.Delete(slices.Clone(list), i, i+1)...)
}

// Find returns a version of a workflow, for version 0 the one that new instances begin with, or
// nil.
func (s *Set) Find(name string, version int) *workflow.Workflow {
	for _, w := range s.Versions(name) {
		if version == 0 || w.Version == version {
			return w
		}
	}
	return nil
}

// Versions are those of a workflow: the one that new instances begin with, then the others, the
// newest first; none: it is not known.
func (s *Set) Versions(name string) []*workflow.Workflow { return s.begun.Load().byName[name] }

// Names are those of all workflows, in order.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.byName)) }

// Newest are, by name, the versions of all workflows that new instances begin with: the newest, unless
// something else was said.
func (s *Set) Newest() (list []*workflow.Workflow) {
	for _, name := range s.Names() {
		list = append(list, s.Versions(name)[0])
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
	if versions := s.byName[name]; len(versions) > 0 {
		declared = versions[0].Horizons
	}
	return declared.Resolve(s.replay)
}

// Routes are who takes messages, by consumer.
func (s *Set) Routes() map[string][]decide.MessageRoute { return s.begun.Load().routes }

// Prepare makes a command ready to be decided; see decide.Prepare. Error:
// WorkflowNotFound, too.
func (s *Set) Prepare(c transitions.Command, newID func() uuid.UUID) (*decide.Prepared, error) {
	versions := s.Versions(c.Workflow)
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
