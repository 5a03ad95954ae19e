package workflow

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-playground/validator/v10"
)

// None is the payload of a transition that needs none: an empty object.
type None struct{}

// MaxBusinessKey is the longest business key in bytes.
const MaxBusinessKey = 255

var validate = func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			return f.Name
		}
		return name
	})
	return v
}()

func (t *Transition[D, P]) decode(raw []byte) (Payload, error) {
	var p P
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if raw[0] != '{' {
		return Payload{}, invalid("", "must be a JSON object")
	}
	if err := json.Unmarshal(raw, &p, jsonPayload); err != nil {
		return Payload{}, decodeError(err)
	}
	if err := validate.Struct(p); err != nil {
		return Payload{}, validationError(err)
	}
	out := Payload{value: p}
	if t.key != nil {
		out.key = t.key(p)
		if err := checkBusinessKey(out.key); err != nil {
			return Payload{}, err
		}
	}
	return out, nil
}

func checkBusinessKey(key string) error {
	switch {
	case key == "":
		return invalid("", "the business key that this payload names is empty")
	case len(key) > MaxBusinessKey:
		return invalid("", "the business key that this payload names is longer than 255 bytes")
	case strings.ContainsRune(key, 0):
		return invalid("", "the business key that this payload names contains a NUL")
	}
	return nil
}

func invalid(pointer, message string) *Error {
	return &Error{Code: InvalidPayload, Message: "the payload is not valid",
		Fields: []FieldError{{Pointer: pointer, Message: message}}}
}

// decodeError says what is wrong without repeating the payload or naming Go's
// types.
func decodeError(err error) *Error {
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		pointer := string(e.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return invalid(pointer, "unknown field")
		case e.GoType != nil:
			return invalid(pointer, "must be "+jsonTypeOf(e.GoType))
		default:
			return invalid(pointer, "has the wrong type")
		}
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return invalid(string(e.JSONPointer), "is not valid JSON: "+syntaxProblem(e))
	}
	return invalid("", "is not valid JSON")
}

func syntaxProblem(e *jsontext.SyntacticError) string {
	switch {
	case errors.Is(e, jsontext.ErrDuplicateName):
		return "a field occurs twice"
	case e.Err != nil:
		return strings.TrimPrefix(e.Err.Error(), "jsontext: ")
	default:
		return "syntax error"
	}
}

func jsonTypeOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.PkgPath() == "time" && t.Name() == "Time":
		return "an RFC 3339 time"
	case t.PkgPath() == "github.com/google/uuid" && t.Name() == "UUID":
		return "a UUID"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer that fits " + t.Kind().String()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a non-negative integer that fits " + t.Kind().String()
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	default:
		return "an object"
	}
}

func validationError(err error) *Error {
	fields, ok := errors.AsType[validator.ValidationErrors](err)
	if !ok {
		return &Error{Code: Internal, Message: "the payload could not be validated", Cause: err}
	}
	out := &Error{Code: InvalidPayload, Message: "the payload is not valid"}
	for _, f := range fields {
		out.Fields = append(out.Fields, FieldError{Pointer: pointerOf(f.Namespace()), Message: ruleText(f)})
	}
	return out
}

// pointerOf turns validator's "Place.items[0].sku" into "/items/0/sku".
func pointerOf(namespace string) string {
	_, path, _ := strings.Cut(namespace, ".")
	path = strings.NewReplacer("~", "~0", "/", "~1").Replace(path)
	return "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(path)
}

func ruleText(f validator.FieldError) string {
	many := ""
	switch f.Kind() {
	case reflect.String:
		many = " characters"
	case reflect.Slice, reflect.Array, reflect.Map:
		many = " entries"
	}
	switch f.Tag() {
	case "required":
		return "is required"
	case "gt":
		return "must be more than " + f.Param() + many
	case "gte", "min":
		return "must be at least " + f.Param() + many
	case "lt":
		return "must be less than " + f.Param() + many
	case "lte", "max":
		return "must be at most " + f.Param() + many
	case "len":
		return "must be exactly " + f.Param() + many
	case "oneof":
		return "must be one of: " + strings.Join(strings.Fields(f.Param()), ", ")
	case "email", "uuid", "url", "datetime", "iso4217":
		return "must be a valid " + f.Tag()
	default:
		if f.Param() != "" {
			return "must satisfy " + f.Tag() + "=" + f.Param()
		}
		return "must satisfy " + f.Tag()
	}
}
