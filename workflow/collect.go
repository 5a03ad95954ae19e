package workflow

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-playground/validator/v10"

	"github.com/pawlhq/pawl/internal/schemagen"
)

// unreadableFields returns all errors of a text that the decoder has refused for t, where the decoder stops at the first. It passes each
// value to the decoder separately and collects its errors. It reports violated rules only if they do not depend on unreadable values.
// refusal is the decoder's error, which is always included.
func unreadableFields(raw []byte, t reflect.Type, reading json.Options, refusal error) *Error {
	first := decodeError(refusal)
	c := &collector{dec: jsontext.NewDecoder(bytes.NewReader(raw)), reading: reading}
	c.readable = jsontext.NewEncoder(&c.text)
	if !descends(t, c.dec.PeekKind()) {
		return first
	}
	err := c.container(t)
	if err != nil && err != errEnough {
		c.add(decodeError(err).Fields[0])
	}
	if !c.has(first.Fields[0]) {
		c.fields = append([]FieldError{first.Fields[0]}, c.fields...)
	}
	if err == nil {
		c.rules(t)
	}
	return fieldsError(c.fields, c.count)
}

// collector walks a text together with its Go type.
type collector struct {
	dec      *jsontext.Decoder
	reading  json.Options
	readable *jsontext.Encoder // writes to text what can be read
	text     bytes.Buffer
	fields   []FieldError // the first of what is wrong, with whole pointers
	count    int          // of all that is wrong
	visited  int          // values so far
}

// maxVisited bounds the values that are visited, and so what a payload can cost
// that is refused. What is wrong behind them is told when those are right.
const maxVisited = 20_000

var errEnough = errors.New("enough was visited")

func (c *collector) visit() error {
	if c.visited++; c.visited > maxVisited {
		return errEnough
	}
	return nil
}

func (c *collector) add(f FieldError) {
	if c.count++; len(c.fields) < maxFieldErrors {
		c.fields = append(c.fields, f)
	}
}

// has reports whether the place of a field is among those that are listed. Its
// pointer may be shortened.
func (c *collector) has(f FieldError) bool {
	for _, found := range c.fields {
		if shorten(found.Pointer) == f.Pointer {
			return true
		}
	}
	c.count++
	return false
}

// refused adds what the decoder says of the value that was read last, or of what
// is inside it.
func (c *collector) refused(err error, inside string) {
	if c.count >= maxFieldErrors { // nobody sees its pointer, which may be long
		c.count++
		return
	}
	f := decodeFailure(err)
	c.add(FieldError{Pointer: string(c.dec.StackPointer()) + inside, Message: f.Message})
}

// container reads an object or an array for a t that descends into it. Its error
// is about the text, of which the rest cannot be read.
func (c *collector) container(t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	begin, err := c.dec.ReadToken()
	if err != nil {
		return err
	}
	if err := c.readable.WriteToken(begin); err != nil {
		return err
	}
	if begin.Kind() == '{' {
		err = c.object(t)
	} else {
		err = c.array(t)
	}
	if err != nil {
		return err
	}
	end, err := c.dec.ReadToken()
	if err != nil {
		return err
	}
	return c.readable.WriteToken(end)
}

// object reads the members of a struct or a map. One that is not a container is
// decoded as the only member, so that the decoder finds its field and its tags.
func (c *collector) object(t reflect.Type) error {
	l := schemagen.LayoutOf(t)
	for c.dec.PeekKind() != '}' {
		if err := c.visit(); err != nil {
			return err
		}
		token, err := c.dec.ReadToken()
		if err != nil {
			return err
		}
		name := jsontext.String(token.String())
		if member := l.Plain(token.String()); member != nil && descends(member, c.dec.PeekKind()) {
			if err := errors.Join(c.readable.WriteToken(name), c.container(member)); err != nil {
				return err
			}
			continue
		}
		value, err := c.dec.ReadValue()
		if err != nil {
			return err
		}
		if err := json.Unmarshal(alone(name, value), reflect.New(t).Interface(), c.reading); err != nil {
			c.refused(err, inside(err))
			continue
		}
		if err := errors.Join(c.readable.WriteToken(name), c.readable.WriteValue(value)); err != nil {
			return err
		}
	}
	return nil
}

// alone is an object with one member.
func alone(name jsontext.Token, value jsontext.Value) []byte {
	quoted, err := jsontext.AppendQuote(nil, name.String())
	if err != nil {
		return nil // what the decoder would not have read
	}
	text := make([]byte, 0, len(quoted)+len(value)+3)
	text = append(append(append(text, '{'), quoted...), ':')
	return append(append(text, value...), '}')
}

// inside is the place of an error behind the one member of an object.
func inside(err error) string {
	pointer := strings.TrimPrefix(decodeFailure(err).Pointer, "/")
	if slash := strings.IndexByte(pointer, '/'); slash >= 0 {
		return pointer[slash:]
	}
	return ""
}

// array reads the entries of a slice or an array. null stands for one that cannot
// be read, so that the others keep their places.
func (c *collector) array(t reflect.Type) error {
	entries := 0
	for ; c.dec.PeekKind() != ']'; entries++ {
		if err := c.visit(); err != nil {
			return err
		}
		if descends(t.Elem(), c.dec.PeekKind()) {
			if err := c.container(t.Elem()); err != nil {
				return err
			}
			continue
		}
		value, err := c.dec.ReadValue()
		if err != nil {
			return err
		}
		if err := json.Unmarshal(value, reflect.New(t.Elem()).Interface(), c.reading); err != nil {
			c.refused(err, decodeFailure(err).Pointer)
			value = jsontext.Value("null")
		}
		if err := c.readable.WriteValue(value); err != nil {
			return err
		}
	}
	if t.Kind() == reflect.Array && entries != t.Len() {
		array := c.dec.StackPointer() // a pointer is as long as the names in it: not one for each array
		if entries > 0 {
			array = array.Parent() // of the last entry's
		}
		c.add(FieldError{Pointer: string(array), Message: "must be " + arrayOf(t)})
	}
	return nil
}

// descends reports whether a value of this kind is read into a t part by part.
func descends(t reflect.Type, kind jsontext.Kind) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch schemagen.LayoutOf(t).Kind {
	case schemagen.Struct, schemagen.Map:
		return kind == '{'
	case schemagen.Array:
		return kind == '['
	}
	return false
}

// rules adds the rules that what could be read breaks. It leaves out those of a
// place that could not be read, or that such a place is in, and those between fields.
func (c *collector) rules(t reflect.Type) {
	if c.count > maxFieldErrors {
		return
	}
	v := reflect.New(t)
	if json.Unmarshal(c.text.Bytes(), v.Interface(), c.reading) != nil {
		return
	}
	broken, err := brokenRules(v.Elem().Interface())
	if err != nil {
		return
	}
	unread := c.fields
	for _, f := range broken {
		pointer := pointerOf(f.Namespace())
		if !betweenFields(f) && !touches(unread, pointer) {
			c.add(FieldError{Pointer: pointer, Message: ruleText(t, f)})
		}
	}
}

func betweenFields(f validator.FieldError) bool {
	tag := f.ActualTag()
	return strings.Contains(tag, "field") || strings.Contains(tag, "required_") ||
		strings.Contains(tag, "excluded_") || strings.Contains(tag, "skip_")
}

// touches reports whether a place is one of the fields, in one of them, or around one.
func touches(fields []FieldError, pointer string) bool {
	for _, f := range fields {
		short, long := f.Pointer, pointer
		if len(short) > len(long) {
			short, long = long, short
		}
		if rest, in := strings.CutPrefix(long, short); in && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// fieldsError is the error about the first of so many fields.
func fieldsError(fields []FieldError, count int) *Error {
	out := &Error{Code: InvalidPayload, Message: "the payload is not valid"}
	for _, f := range fields[:min(len(fields), maxFieldErrors)] {
		out.Fields = append(out.Fields, FieldError{Pointer: shorten(f.Pointer), Message: f.Message})
	}
	if more := count - len(out.Fields); more > 0 {
		out.Fields = append(out.Fields, FieldError{Message: fmt.Sprintf("and %d more", more)})
	}
	return out
}
