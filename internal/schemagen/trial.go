package schemagen

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-playground/validator/v10"
)

// try looks for rules that would make the validator fail, or answer by more than the value, by asking it about the zero value of t.
func (b *builder) try(f form, t reflect.Type, blocks []block) error {
	for _, rule := range blocks {
		if rule.any(omitting) || rule.any(skipping) || rule.any(fieldRules) {
			continue
		}
		var err error
		switch {
		case rule.any(impure):
			err = errors.New("it asks the disk or the network, and so may answer one payload in two ways")
		case rule.any(clocked) && t.ConvertibleTo(reflect.TypeFor[time.Time]()):
			err = errors.New("it reads the clock; compare with Call.Now in the action")
		case f == formAny && rule.text != "required":
			err = errors.New("the value may be of any type, and the rule is not for all of them")
		case rule.any([]string{"unique"}) && !hashable(t):
			err = errors.New("its entries cannot be compared")
		default:
			err = b.tryAlone(t, rule)
		}
		if err != nil {
			return fmt.Errorf("rule %q: %w", rule.text, err)
		}
	}
	return nil
}

// tryAlone tries each alternative by itself: of several the validator asks only until one holds.
func (b *builder) tryAlone(t reflect.Type, rule block) error {
	for i, text := range strings.Split(rule.text, "|") {
		if _, err := b.valid(t, text); err != nil {
			return err
		}
		if name := rule.checks[i].name; !readsValues(t, name) {
			return fmt.Errorf("%s applies to strings, not to %s", name, t)
		}
	}
	return nil
}

// acceptsZero asks the validator whether rules let the zero value of t pass.
func (b *builder) acceptsZero(t reflect.Type, r rules) (bool, error) {
	inner := t
	for inner.Kind() == reflect.Pointer {
		inner = inner.Elem()
	}
	if k := inner.Kind(); r.dive && k != reflect.Slice && k != reflect.Array && k != reflect.Map {
		return false, fmt.Errorf("rule \"dive\": %s has no entries", inner)
	}
	return b.valid(t, r.tag())
}

// valid asks the validator about the zero value of t under a validate tag. The value stands in a struct, because the validator treats a
// struct that stands alone in another way. The validator panics on a tag that it cannot apply.
func (b *builder) valid(t reflect.Type, tag string) (valid bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the validator cannot apply it: %v", p)
		}
	}()
	holder := reflect.StructOf([]reflect.StructField{{
		Name: "Value", Type: t, Tag: reflect.StructTag("validate:" + strconv.Quote(tag)),
	}})
	err = b.validate.Struct(reflect.Zero(holder).Interface())
	if _, refused := errors.AsType[validator.ValidationErrors](err); refused {
		return false, nil
	}
	return err == nil, err
}

// hashable reports whether the entries of t can be keys of a map whatever they hold, which is how the validator finds repeated ones.
func hashable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
	default:
		return true // the validator itself refuses the rule
	}
	elem := t.Elem()
	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	return elem.Comparable() && !holdsInterface(elem)
}

func holdsInterface(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array:
		return holdsInterface(t.Elem())
	case reflect.Struct:
		return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
			return holdsInterface(f.Type)
		})
	default:
		return false
	}
}
