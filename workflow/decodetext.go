package workflow

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// decodeError is decodeFailure as the error of a payload.
func decodeError(err error) *Error {
	f := decodeFailure(err)
	return invalid(f.Pointer, f.Message)
}

// decodeFailure says what is wrong and where, with the whole pointer, without
// repeating the payload or naming Go's types.
func decodeFailure(err error) FieldError {
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		pointer := string(e.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return FieldError{pointer, "unknown field"}
		case e.GoType != nil:
			return FieldError{pointer, "must be " + jsonTypeOf(e)}
		default:
			return FieldError{pointer, "has the wrong type"}
		}
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return FieldError{string(e.JSONPointer), "is not valid JSON: " + syntaxProblem(e)}
	}
	return FieldError{"", "is not valid JSON"}
}

func syntaxProblem(e *jsontext.SyntacticError) string {
	if errors.Is(e, jsontext.ErrDuplicateName) {
		return "a field occurs twice"
	}
	if errors.Is(e, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	text := ""
	if e.Err != nil {
		text = e.Err.Error()
	}
	switch {
	case strings.HasPrefix(text, "invalid character "), text == "invalid UTF-8":
		return text
	case text == "exceeded max depth":
		return "it nests too deep"
	default:
		return "a string or a number is malformed" // the text would quote it
	}
}

// jsonTypeOf says what the decoder would have taken in place of the value that
// it refused.
func jsonTypeOf(e *json.SemanticError) string {
	t := e.GoType
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "an RFC 3339 time"
	case t == reflect.TypeFor[uuid.UUID]():
		return "a UUID"
	case decodesWith[json.Unmarshaler](t) || decodesWith[json.UnmarshalerFrom](t):
		return "a valid value"
	case decodesWith[encoding.TextUnmarshaler](t):
		return "a valid string"
	}
	// A number that is refused without a reason should have been a string.
	form := ""
	if e.JSONKind == '0' && e.Err == nil {
		form = ", written as a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of %d bits", t.Bits()) + form
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fmt.Sprintf("a non-negative integer of %d bits", t.Bits()) + form
	case reflect.Float32, reflect.Float64:
		return fmt.Sprintf("a number of %d bits", t.Bits()) + form
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return arrayOf(t)
	default:
		return "an object"
	}
}

// arrayOf says what a list is in JSON, and how long one of fixed length is: another one is refused, too.
func arrayOf(t reflect.Type) string {
	fixed := t.Kind() == reflect.Array
	switch bytes := t.Elem().Kind() == reflect.Uint8 && t.Elem().PkgPath() == ""; {
	case bytes && fixed:
		return fmt.Sprintf("a base64 string of %d bytes", t.Len())
	case bytes:
		return "a base64 string"
	case fixed:
		return fmt.Sprintf("an array of length %d", t.Len())
	}
	return "an array"
}

func decodesWith[I any](t reflect.Type) bool {
	i := reflect.TypeFor[I]()
	return t.Implements(i) || reflect.PointerTo(t).Implements(i)
}
