package unknown

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object in the order of its members.
type object struct {
	names  []string
	values []jsontext.Value
	at     map[string]int
}

func (o *object) get(name string) jsontext.Value {
	if i, is := o.at[name]; is {
		return o.values[i]
	}
	return nil
}

// set replaces a member, or adds it at the end.
func (o *object) set(name string, value jsontext.Value) {
	if i, is := o.at[name]; is {
		o.values[i] = value
		return
	}
	o.at[name] = len(o.names)
	o.names, o.values = append(o.names, name), append(o.values, value)
}

func (o *object) encode() (jsontext.Value, error) {
	b := []byte{'{'}
	for i, name := range o.names {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = jsontext.AppendQuote(b, name); err != nil {
			return nil, err
		}
		b = append(append(b, ':'), o.values[i]...)
	}
	return append(b, '}'), nil
}

// objectOf reads an object; nil: it is something else.
func objectOf(v jsontext.Value) (*object, error) {
	if v.Kind() != '{' {
		return nil, nil
	}
	o := &object{at: map[string]int{}}
	d := jsontext.NewDecoder(bytes.NewReader(v)) // refuses a name that is there twice, as who decoded it has
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String() // before the next read makes it void
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		o.set(text, value.Clone())
	}
	return o, nil
}

// arrayOf reads an array. false: it is something else.
func arrayOf(v jsontext.Value) (list []jsontext.Value, is bool, err error) {
	if v.Kind() != '[' {
		return nil, false, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, false, err
	}
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, false, err
		}
		list = append(list, value.Clone())
	}
	return list, true, nil
}

func encodeArray(list []jsontext.Value) jsontext.Value {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}
