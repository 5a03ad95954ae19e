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
	"github.com/pawlhq/pawl/workflow"
)

// Set is a set of workflow versions. After Build only the default versions change. It is safe for concurrent use.
type Set struct {
	byName map[string][]*workflow.Workflow  // the newest first
	plans  map[string][]*workflow.Migration // by workflow
	replay time.Duration
	begun  atomic.Pointer[begun]
}

// begun are the versions of each workflow with the default version first.
type begun struct {
	byName map[string][]*workflow.Workflow
	routes map[string][]decide.MessageRoute // of messages, by consumer
}

// Build builds every definition. replay is the default retention period of answers. Its error joins the mistakes of all.
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

// plan builds the migration plans between the versions of a workflow. A plan from an unknown version is ignored.
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

// Plans returns all plans, by workflow.
func (s *Set) Plans() (list []*workflow.Migration) {
	for _, name := range s.Names() {
		list = append(list, s.plans[name]...)
	}
	return list
}

// Migrations returns the plans that migrate instances of a workflow to a version.
func (s *Set) Migrations(name string, to int) (list []*workflow.Migration) {
	for _, m := range s.plans[name] {
		if m.To.Version == to {
			list = append(list, m)
		}
	}
	return list
}

// Begin sets the default versions of workflows: the newest known one that is not newer than the given one.
func (s *Set) Begin(versions map[string]int) {
	b := &begun{byName: s.order(versions)}
	var first []*workflow.Workflow
	for _, name := range s.Names() {
		first = append(first, b.byName[name][0])
	}
	b.routes = decide.MessageRoutes(first, func(name string) []*workflow.Workflow { return b.byName[name][1:] })
	s.begun.Store(b)
}

// Begun reports whether these are the default versions already.
func (s *Set) Begun(versions map[string]int) bool {
	same := func(a, b []*workflow.Workflow) bool { return a[0] == b[0] }
	return maps.EqualFunc(s.order(versions), s.begun.Load().byName, same)
}

// Begins lists the default versions: the name, a space and the version.
func (s *Set) Begins() []string {
	list := []string{}
	for _, w := range s.Newest() {
		list = append(list, fmt.Sprint(w.Name, " ", w.Version))
	}
	return list
}

// order returns the versions of each workflow with the default version first.
func (s *Set) order(versions map[string]int) map[string][]*workflow.Workflow {
	byName := maps.Clone(s.byName)
	for name, most := range versions {
		if list := byName[name]; list != nil {
			// Move the newest version up to most, otherwise the oldest, to the front.
			i := slices.IndexFunc(list, func(w *workflow.Workflow) bool { return w.Version <= most })
			if i < 0 {
				i = len(list) - 1
			}
			byName[name] = append([]*workflow.Workflow{list[i]}, slices.Delete(slices.Clone(list), i, i+1)...)
		}
	}
	return byName
}

// Behind reports whether a newer version of the workflow, or for "" of any known workflow, is known elsewhere.
func (s *Set) Behind(name string, elsewhere map[string]int) bool {
	for known, list := range s.byName {
		if (name == "" || name == known) && list[0].Version < elsewhere[known] {
			return true
		}
	}
	return false
}

// Find returns a version of a workflow, the default version for 0, or nil.
func (s *Set) Find(name string, version int) *workflow.Workflow {
	for _, w := range s.Versions(name) {
		if version == 0 || w.Version == version {
			return w
		}
	}
	return nil
}

// Versions returns the versions of a workflow: the default version, then the others, newest first. It returns none for an unknown workflow.
func (s *Set) Versions(name string) []*workflow.Workflow { return s.begun.Load().byName[name] }

// Names returns the names of all workflows, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.byName)) }

// Newest returns the default versions of all workflows, by name.
func (s *Set) Newest() (list []*workflow.Workflow) {
	for _, name := range s.Names() {
		list = append(list, s.Versions(name)[0])
	}
	return list
}

// All returns all versions, by name.
func (s *Set) All() (list []*workflow.Workflow) {
	for _, name := range s.Names() {
		list = append(list, s.byName[name]...)
	}
	return list
}

// Horizons returns the retention periods of a workflow's newest version, resolved.
func (s *Set) Horizons(name string) workflow.Horizons {
	var declared workflow.Horizons
	if versions := s.byName[name]; len(versions) > 0 {
		declared = versions[0].Horizons
	}
	return declared.Resolve(s.replay)
}

// Routes returns the receivers of messages, by consumer.
func (s *Set) Routes() map[string][]decide.MessageRoute { return s.begun.Load().routes }

// Resolve calls [decide.Prepared.Resolve] with the versions of the command's workflow, after it has checked its retention periods. Error: also
// WorkflowNotFound.
func (s *Set) Resolve(p *decide.Prepared, newID func() uuid.UUID) error {
	versions := s.Versions(p.Workflow)
	if len(versions) == 0 {
		return NotFound(p.Workflow)
	}
	if err := p.CheckKeep(s.Horizons(p.Workflow)); err != nil {
		return err
	}
	return p.Resolve(newID, versions[0], versions[1:]...)
}

// NotFound returns the error for an unknown workflow.
func NotFound(name string) error {
	return workflow.Errorf(workflow.WorkflowNotFound, "there is no workflow %q", name)
}
