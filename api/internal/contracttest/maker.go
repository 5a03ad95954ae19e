package contracttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
)

// Maker makes requests up from a document: of every operation, with what it says of parameters and bodies, and with what
// it forbids. It is for one goroutine.
type Maker struct {
	*rand.Rand
	Known *Known // what to say of things that are there

	schemas    map[string]any
	operations []operation
}

// Call is a request that was made up.
type Call struct {
	Operation string // method and path of the document
	Method    string
	Path      string // with its query, as it is sent
	Header    [][2]string
	Body      []byte // nil for none
	Broken    string // what was done to it, "" for what the document allows
}

// String shows a call that went wrong.
func (c *Call) String() string {
	body := c.Body
	if len(body) > 500 {
		body = body[:500]
	}
	path := c.Path
	if len(path) > 500 {
		path = path[:500]
	}
	return fmt.Sprintf("%s %q %q %q (broken: %s; of %s)", c.Method, path, c.Header, body, c.Broken, c.Operation)
}

type operation struct {
	method, path string
	parameters   []parameter
	body         map[string]any // by media type
	required     bool
}

type parameter struct {
	name, in string
	required bool
	schema   any
}

// NewMaker reads a document. Skip says which operations are not asked.
func NewMaker(document []byte, random *rand.Rand, known *Known, skip func(operation string) bool) (*Maker, error) {
	var d struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Ref string `json:"$ref"`
			}
			RequestBody struct {
				Required bool
				Content  map[string]struct{ Schema any }
			}
		}
		Components struct {
			Schemas    map[string]any
			Parameters map[string]struct {
				Name, In string
				Required bool
				Schema   any
			}
		}
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	m := &Maker{Rand: random, Known: known, schemas: d.Components.Schemas}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			said := d.Paths[path][method]
			o := operation{method: strings.ToUpper(method), path: path, required: said.RequestBody.Required, body: map[string]any{}}
			if skip(o.name()) {
				continue
			}
			for _, ref := range said.Parameters {
				p, known := d.Components.Parameters[strings.TrimPrefix(ref.Ref, "#/components/parameters/")]
				if !known {
					return nil, fmt.Errorf("%s: parameter %s is missing", o.name(), ref.Ref)
				}
				o.parameters = append(o.parameters, parameter{p.Name, p.In, p.Required, p.Schema})
			}
			for media, c := range said.RequestBody.Content {
				o.body[media] = c.Schema
			}
			m.operations = append(m.operations, o)
		}
	}
	return m, nil
}

func (o *operation) name() string { return o.method + " " + o.path }

// Operations are the names of those that are asked.
func (m *Maker) Operations() (all []string) {
	for i := range m.operations {
		all = append(all, m.operations[i].name())
	}
	return all
}

// Call makes a request up. About half of them the document does not allow.
func (m *Maker) Call() *Call {
	o := &m.operations[m.IntN(len(m.operations))]
	d := m.draft(o)
	if m.often(0.5) {
		d.broken = m.breakOne(d)
		if m.often(0.2) {
			d.broken += ", " + m.breakOne(d)
		}
	}
	return d.call(o)
}

// often is true in so many of cases.
func (m *Maker) often(share float64) bool { return m.Float64() < share }

// draft is a request in its parts, as they are sent.
type draft struct {
	o      *operation
	path   map[string]string
	query  [][2]string
	header [][2]string
	media  string
	value  any    // of the JSON that is the body
	body   []byte // the body otherwise; nil for none
	broken string
}

func (m *Maker) draft(o *operation) *draft {
	d := &draft{o: o, path: map[string]string{}}
	for _, p := range o.parameters {
		switch {
		case p.in == "path":
			d.path[p.name] = url.PathEscape(m.text(p.schema, p.name))
		case !p.required && !m.often(0.25):
		case p.in == "query":
			d.query = append(d.query, m.asQuery(&p)...)
		case p.in == "header":
			d.header = append(d.header, [2]string{p.name, m.headerText(&p)})
		}
	}
	m.together(func(name string) bool {
		return slices.ContainsFunc(o.parameters, func(p parameter) bool { return p.name == name && p.in != "header" })
	}, func(name, value string) {
		if _, is := d.path[name]; is {
			d.path[name] = url.PathEscape(value)
		} else {
			d.query = slices.DeleteFunc(d.query, func(q [2]string) bool { return q[0] == name })
			d.query = append(d.query, [2]string{name, url.QueryEscape(value)})
		}
	})
	if len(o.body) > 0 && (o.required || m.often(0.8)) {
		m.fill(d)
	}
	return d
}

// together replaces present or possible values with values that are known to belong together.
func (m *Maker) together(has func(name string) bool, set func(name, value string)) {
	for _, names := range together {
		if slices.ContainsFunc(names, func(name string) bool { return !has(name) }) || m.often(0.4) {
			continue
		}
		for i, value := range m.Known.pickTogether(m.Rand, names) {
			set(names[i], value)
		}
	}
}

// fill gives a draft a body. JSON in lines is a line or two of it.
func (m *Maker) fill(d *draft) {
	media := slices.Sorted(maps.Keys(d.o.body))
	d.media = media[m.IntN(len(media))]
	if d.media == "*/*" {
		d.media, d.body = "application/json", appendJSON(nil, m.anything(3))
		return
	}
	schema := d.o.body[d.media]
	if d.media != "application/x-ndjson" {
		d.value = m.value(schema, "", 0)
		return
	}
	d.body = []byte{}
	for _, item := range m.items(d.o.body["application/json"]) {
		d.body = append(appendJSON(d.body, item), '\n')
	}
}

func (m *Maker) items(schema any) []any {
	list, _ := m.value(schema, "", 0).([]any)
	return list
}

// asQuery is a parameter of the query: several times where it is a list.
func (m *Maker) asQuery(p *parameter) (all [][2]string) {
	switch v := m.value(p.schema, p.name, 0).(type) {
	case []any:
		for _, item := range v {
			if text := plainText(item); text != "" { // a list has no empty item in a query: it would be as none
				all = append(all, [2]string{p.name, url.QueryEscape(text)})
			}
		}
	default:
		all = append(all, [2]string{p.name, url.QueryEscape(plainText(v))})
	}
	return all
}

func (m *Maker) text(schema any, name string) string { return plainText(m.value(schema, name, 0)) }

// headerText is a value without what no HTTP client sends.
func (m *Maker) headerText(p *parameter) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '.'
		}
		return r
	}, m.text(p.schema, p.name))
}

func plainText(v any) string {
	if s, is := v.(string); is {
		return s
	}
	return string(appendJSON(nil, v))
}

// call puts the parts together.
func (d *draft) call(o *operation) *Call {
	c := &Call{Operation: o.name(), Method: o.method, Header: d.header, Broken: d.broken, Body: d.body}
	var path strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(o.path, "/"), "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			part = d.path[strings.TrimSuffix(name, "}")]
		}
		path.WriteString("/" + part)
	}
	mark := "?"
	for _, q := range d.query {
		path.WriteString(mark + q[0] + "=" + q[1])
		mark = "&"
	}
	c.Path = path.String()
	if d.body == nil && d.media != "" {
		c.Body = appendJSON(nil, d.value)
	}
	if d.media != "" {
		c.Header = append(c.Header, [2]string{"Content-Type", d.media})
	}
	return c
}
