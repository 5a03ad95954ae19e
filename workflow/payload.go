package workflow

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-playground/validator/v10"
)

// None is the payload of a transition that needs none: an empty object.
type None struct{}

// MaxBusinessKey is the longest business key in bytes.
const MaxBusinessKey = 255

func (t *Transition[D, P]) decode(raw []byte) (Payload, error) {
	var p P
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if raw[0] != '{' {
		return Payload{}, invalid("", "must be a JSON object")
	}
	if err := json.Unmarshal(raw, &p, t.reading); err != nil {
		return Payload{}, unreadableFields(raw, reflect.TypeFor[P](), t.reading, err)
	}
	if err := validateStruct(p); err != nil {
		return Payload{}, err
	}
	out := Payload{value: p}
	if t.key != nil {
		out.key = t.key(p)
		if err := checkBusinessKey(out.key); err != nil {
			return Payload{}, err
		}
	}
	if t.shared {
		out.raw = bytes.Clone(raw)
	}
	return out, nil
}

// fresh returns a payload that nothing has seen before, so that an action which
// changes its payload in place, or keeps a part of it in the data, decides the
// same when it runs again.
func (t *Transition[D, P]) fresh(p Payload) (P, error) {
	if p.raw == nil {
		return p.value.(P), nil
	}
	var again P
	if err := json.Unmarshal(p.raw, &again, t.reading); err != nil {
		return again, &Error{Code: Internal, Message: "the payload could be decoded only once", Cause: err}
	}
	return again, nil
}

// sharesMemory reports whether a copy of a t can be changed through the
// original.
func sharesMemory(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	case reflect.Array:
		return sharesMemory(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return false // its location is never changed
		}
		for i := range t.NumField() {
			if sharesMemory(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

func checkBusinessKey(key string) error {
	switch {
	case key == "":
		return invalid("", "the business key that this payload names is empty")
	case len(key) > MaxBusinessKey:
		return invalid("", "the business key that this payload names is longer than 255 bytes")
	case strings.ContainsRune(key, 0):
		return invalid("", "the business key that this payload names contains a NUL")
	case !utf8.ValidString(key):
		return invalid("", "the business key that this payload names is not UTF-8")
	}
	return nil
}

func invalid(pointer, message string) *Error {
	return &Error{Code: InvalidPayload, Message: "the payload is not valid",
		Fields: []FieldError{{Pointer: shorten(pointer), Message: message}}}
}

// validateStruct runs the validate tags.
func validateStruct(p any) error {
	broken, err := brokenRules(p)
	if err != nil {
		return err
	}
	if broken == nil {
		return nil
	}
	payload := reflect.TypeOf(p)
	var fields []FieldError
	for _, f := range broken[:min(len(broken), maxFieldErrors)] {
		fields = append(fields, FieldError{pointerOf(f.Namespace()), ruleText(payload, f)})
	}
	return fieldsError(fields, len(broken))
}

// brokenRules runs the validate tags. Schema has tried every rule, so that a
// panic here is the work of a type's own methods.
func brokenRules(p any) (broken validator.ValidationErrors, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{Code: Internal, Message: "the payload could not be validated", Cause: fmt.Errorf("panic: %v", v)}
		}
	}()
	err = validate.Struct(p)
	if err == nil {
		return nil, nil
	}
	broken, ok := errors.AsType[validator.ValidationErrors](err)
	if !ok {
		return nil, &Error{Code: Internal, Message: "the payload could not be validated", Cause: err}
	}
	return broken, nil
}

// maxFieldErrors bounds an answer to a payload with a mistake in every entry.
const maxFieldErrors = 100
