package workflow

import (
	"fmt"
	"reflect"
)

// Name is a transition as callers name it, with the type of its payload. [NameOf] takes it from the definition.
type Name[P any] struct{ Workflow, Transition string }

// NameOf is the name of a transition that a definition declares with the payload P. It is for variables of a package, as
// regexp.MustCompile is, and panics where the definition is not sound, has no such transition, or declares it with another payload.
func NameOf[P any](from Source, transition string) Name[P] {
	w, err := from.Build()
	if err != nil {
		panic(err)
	}
	steps := w.Named(transition)
	if len(steps) == 0 {
		panic(fmt.Sprintf("workflow %q has no transition %q", w.Name, transition))
	}
	if declared, want := steps[0].body.payloadType(), reflect.TypeFor[P](); declared != want {
		panic(fmt.Sprintf("workflow %q: the payload of %q is %s, not %s", w.Name, transition, declared, want))
	}
	return Name[P]{w.Name, transition}
}
