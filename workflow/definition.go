package workflow

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/pawlhq/pawl/internal/schemagen"
)

// Definition is a workflow over instances with data D, as it is being declared.
type Definition[D any] struct {
	name    string
	version int
	parts   []Part[D]
	finals  []State
	roles   []string
	attrs   []attribute[D]
	timers  []timer[D]

	composites []composite
	joins      []join[D]

	horizons Horizons
	maxData  int
	changed  []string // members; see DataChanged
	plans    []Plan[D]
}

type attribute[D any] struct {
	name  string
	value func(D) string
}

// Define begins a workflow. The name is 1 to 64 characters of a-z, 0-9, "_" and
// "-"; the version counts from 1 and grows with every change, because an
// instance stays on its version unless it is migrated; only a member of the data, or an
// attribute, can be added without. Mistakes are reported by Build, all together.
func Define[D any](name string, version int, parts ...Part[D]) *Definition[D] {
	return &Definition[D]{name: name, version: version, parts: parts}
}

// Final declares the states where an instance ends. Nothing leaves them.
func (d *Definition[D]) Final(states ...State) *Definition[D] {
	d.finals = append(d.finals, states...)
	return d
}

// Roles declares the roles that actors can hold. A transition that asks for
// another role is a mistake.
func (d *Definition[D]) Roles(roles ...string) *Definition[D] {
	d.roles = append(d.roles, roles...)
	return d
}

// Attr declares an attribute by which instances can be found. It is computed
// from the data after every transition; "" leaves the instance out.
func (d *Definition[D]) Attr(name string, value func(D) string) *Definition[D] {
	d.attrs = append(d.attrs, attribute[D]{name, value})
	return d
}

// DefaultMaxData is how large the data of an instance may be where its workflow does not say
// it, in bytes of JSON.
const DefaultMaxData = 1 << 20

// MaxData bounds the data of an instance, in bytes of JSON. A transition that would exceed it, and increase the data, is refused with
// [DataTooLarge]; the result of an activity is handled as if the workflow had refused it. The failure of an activity is recorded in any
// case. A node holds the data several times, and every transition stores it. The bound is not part of the definition's hash.
func (d *Definition[D]) MaxData(bytes int) *Definition[D] {
	d.maxData = bytes
	return d
}

// Source is a declared workflow, whatever its data; every *Definition is one.
type Source interface {
	Build() (*Workflow, error)
}

// Build checks the definition as a whole and returns the form that an engine
// runs. Its error lists every mistake; see [Mistakes].
func (d *Definition[D]) Build() (*Workflow, error) {
	w := &Workflow{
		Name: d.name, Version: d.version, Finals: slices.Clone(d.finals), Roles: slices.Clone(d.roles), Horizons: d.horizons,
		MaxData: cmp.Or(d.maxData, DefaultMaxData),
		byName:  map[string][]*Step{}, final: map[State]bool{}, watched: map[string]bool{}, watchedLast: map[string]bool{},
		data: reflect.TypeFor[D](), plans: map[int]*plan{},
	}
	m := &Mistakes{Workflow: d.name}
	for i, p := range append(slices.Clip(d.parts), d.joinParts(m)...) {
		if p == nil {
			m.add("part %d of the definition is nil", i+1)
			continue
		}
		s := p.step()
		w.Steps = append(w.Steps, s)
		w.byName[s.Name] = append(w.byName[s.Name], s)
		w.automatic = w.automatic || s.Auto
		w.watch(s)
	}
	for _, s := range d.finals {
		w.final[s] = true
	}
	for _, a := range d.attrs {
		w.Attributes = append(w.Attributes, a.name)
	}
	for _, t := range d.timers {
		w.Timers = append(w.Timers, t.erase())
	}
	w.attrs = attributes(slices.Clone(d.attrs))
	w.correct = corrects[D](func() map[string]bool { return w.gone })
	w.collectStates()
	w.buildTree(m, d.composites)
	for _, s := range w.Steps {
		if s.Work != nil {
			s.Work.KeepsFrom = s.keepsFrom() || activities(w.byName[s.Name]) > 1
		}
	}
	w.check(m)
	d.check(m, w)
	d.checkChanged(m)
	d.checkPlans(m, w)
	d.horizons.check(m)
	if d.maxData < 0 {
		m.add("MaxData is negative")
	}
	if len(m.List) > 0 {
		return nil, m
	}
	d.takeMembers(w)
	if err := w.takeHash(); err != nil {
		return nil, fmt.Errorf("workflow %q: describe: %w", d.name, err)
	}
	return w, nil
}

// check looks for the mistakes that only the types show.
func (d *Definition[D]) check(m *Mistakes, w *Workflow) {
	var err error
	if w.members, err = schemagen.Stored(reflect.TypeFor[D]()); err != nil {
		m.add("the data %s cannot be stored as JSON: %v", reflect.TypeFor[D](), err)
	}
	for _, a := range d.attrs {
		if a.value == nil {
			m.add("attribute %q has no function", a.name)
		}
	}
	for _, t := range d.timers {
		if t.fromData && t.time == nil {
			m.add("timer %q has no function for its time", t.Name)
		}
	}
}

// attributes computes attributes from data.
func attributes[D any](attrs []attribute[D]) func(data []byte) (map[string]string, error) {
	return func(data []byte) (map[string]string, error) {
		if len(attrs) == 0 {
			return nil, nil
		}
		v, err := decodeData[D](data)
		if err != nil {
			return nil, err
		}
		out := make(map[string]string, len(attrs))
		for _, a := range attrs {
			if s := a.value(v); s != "" {
				out[a.name] = s
			}
		}
		return out, nil
	}
}
