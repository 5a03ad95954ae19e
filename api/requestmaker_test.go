package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// requestMaker makes requests of an OpenAPI document. About half of them violate it. It is not safe for concurrent use.
type requestMaker struct {
	*rand.Rand
	known      *knownValues
	operations []operation
}

type operation struct {
	name, method, path string
	*openapi3.Operation
}

// newRequestMaker omits the operations that skip reports.
func newRequestMaker(document []byte, random *rand.Rand, known *knownValues, skip func(operation string) bool) (*requestMaker, error) {
	d, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, err
	}
	m := &requestMaker{Rand: random, known: known}
	for _, path := range slices.Sorted(maps.Keys(d.Paths.Map())) {
		all := d.Paths.Value(path).Operations()
		for _, method := range slices.Sorted(maps.Keys(all)) {
			if name := method + " " + path; !skip(name) {
				m.operations = append(m.operations, operation{name, method, path, all[method]})
			}
		}
	}
	return m, nil
}

// madeRequest is a request before it is sent.
type madeRequest struct {
	operation
	values  map[string]string // of the path, escaped
	query   [][2]string       // escaped
	header  [][2]string
	media   string
	value   any    // of a JSON body
	broken  string // text of JSON, valid or not, that replaces brokenValue in the body
	body    []byte // nil for none
	defects []string
}

// String shows a request of a failure.
func (r *madeRequest) String() string {
	return fmt.Sprintf("%s %.500q %q %.500q (defects: %q)", r.name, r.target(), r.header, r.body, r.defects)
}

// target returns the path and the query.
func (r *madeRequest) target() string {
	var replace, query []string
	for name, value := range r.values {
		replace = append(replace, "{"+name+"}", value)
	}
	for _, q := range r.query {
		query = append(query, q[0]+"="+q[1])
	}
	return strings.NewReplacer(replace...).Replace(r.path) + "?" + strings.Join(query, "&")
}

func (m *requestMaker) make() *madeRequest {
	r := &madeRequest{operation: m.operations[m.IntN(len(m.operations))], values: map[string]string{}}
	for _, p := range r.Parameters {
		m.addParameter(r, p.Value)
	}
	m.useKnownGroup(func(name string) bool {
		return r.Parameters.GetByInAndName("path", name) != nil ||
			r.Parameters.GetByInAndName("query", name) != nil
	}, r.set)
	if b := r.RequestBody; b != nil && (b.Value.Required || m.often(0.8)) {
		m.addBody(r, b.Value.Content)
	}
	if m.often(0.5) {
		m.breakRequest(r)
	}
	if r.media != "" {
		r.encode()
		r.header = append(r.header, [2]string{"Content-Type", r.media})
	}
	return r
}

func (m *requestMaker) often(share float64) bool { return m.Float64() < share }

func (m *requestMaker) choose(all []string) string { return all[m.IntN(len(all))] }

func (m *requestMaker) addParameter(r *madeRequest, p *openapi3.Parameter) {
	if !p.Required && m.often(0.75) {
		return
	}
	v := m.value(p.Schema, p.Name, 0)
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, item := range list {
		switch text := plainText(item); {
		case p.In == "path":
			r.values[p.Name] = url.PathEscape(cmp.Or(text, "a"))
		case p.In == "query" && (text != "" || !isList): // an empty item counts as none
			r.query = append(r.query, [2]string{p.Name, url.QueryEscape(text)})
		case p.In == "header":
			r.header = append(r.header, [2]string{p.Name, text})
		}
	}
}

// set replaces a value of the path or of the query.
func (r *madeRequest) set(name, value string) {
	if _, isPath := r.values[name]; isPath {
		r.values[name] = url.PathEscape(value)
		return
	}
	r.query = append(slices.DeleteFunc(r.query, func(q [2]string) bool { return q[0] == name }), [2]string{name, url.QueryEscape(value)})
}

// useKnownGroup sets values that are known to belong together.
func (m *requestMaker) useKnownGroup(has func(name string) bool, set func(name, value string)) {
	for _, names := range knownGroups {
		if slices.ContainsFunc(names, func(name string) bool { return !has(name) }) || m.often(0.4) {
			continue
		}
		group, _ := m.known.pick(m.Rand, strings.Join(names, " ")).(string)
		for i, value := range strings.Split(group, "\x00") {
			if group != "" {
				set(names[i], value)
			}
		}
	}
}

func (m *requestMaker) addBody(r *madeRequest, content openapi3.Content) {
	switch r.media = m.choose(slices.Sorted(maps.Keys(content))); r.media {
	case "*/*":
		r.media, r.value = "application/json", m.anyValue(3)
	case "application/x-ndjson":
		r.body = []byte{}
		list, _ := m.value(content["application/json"].Schema, "", 0).([]any)
		for _, item := range list {
			r.body = append(append(r.body, encodeJSON(item)...), '\n')
		}
	default:
		r.value = m.value(content[r.media].Schema, "", 0)
	}
}

// brokenValue marks the value that madeRequest.broken replaces.
const brokenValue = "BROKEN VALUE"

func (r *madeRequest) encode() {
	if r.body == nil {
		r.body = bytes.ReplaceAll(encodeJSON(r.value), []byte(strconv.Quote(brokenValue)), []byte(r.broken))
	}
}

func encodeJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func plainText(v any) string {
	if s, is := v.(string); is {
		return s
	}
	return string(encodeJSON(v))
}

// value returns a value that a schema allows. The name of its parameter or member selects known values.
func (m *requestMaker) value(ref *openapi3.SchemaRef, name string, depth int) any {
	if ref == nil || depth > 8 {
		return m.anyValue(2)
	}
	s := ref.Value
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[m.IntN(len(s.Enum))]
	case len(s.AnyOf)+len(s.OneOf) > 0:
		of := slices.Concat(s.AnyOf, s.OneOf)
		return m.value(of[m.IntN(len(of))], name, depth+1)
	}
	kind := ""
	if types := s.Type.Slice(); len(types) > 0 {
		kind = m.choose(types)
	}
	if v := m.known.pick(m.Rand, name); v != nil && m.often(0.75) {
		_, isText := v.(string)
		if kind == "" || isText == (kind == "string") && kind != "array" && kind != "boolean" {
			return v
		}
	}
	switch kind {
	case "string":
		return m.text(s)
	case "integer", "number":
		return m.number(s)
	case "boolean":
		return m.often(0.5)
	case "null":
		return nil
	case "array":
		list := make([]any, int(s.MinItems)+m.IntN(min(most(s.MaxItems, 3)-int(s.MinItems), 3)+1))
		for i := range list {
			list[i] = m.value(s.Items, name, depth+1)
		}
		return list
	case "object":
		return m.object(s, depth)
	}
	return m.anyValue(3)
}

func most(limit *uint64, otherwise int) int {
	if limit == nil {
		return otherwise
	}
	return int(*limit)
}

// alphabet includes characters that some encoding escapes, and characters of several bytes.
var alphabet = []rune("abcXYZ019 -_.:/%&=+?#\"'\\<>;,äß€😀漢")

func (m *requestMaker) text(s *openapi3.Schema) string {
	switch {
	case s.Format == "date-time":
		return time.Now().Add(time.Duration(m.Int64N(int64(48*time.Hour))) - 24*time.Hour).UTC().Format(time.RFC3339Nano)
	case s.Format == "uuid":
		return fmt.Sprintf("%08x-%04x-7%03x-8%03x-%012x", m.Uint32(), m.IntN(1<<16), m.IntN(1<<12), m.IntN(1<<12), m.Int64N(1<<48))
	case s.Pattern != "":
		text, _ := m.known.pick(m.Rand, s.Pattern).(string)
		return text + strings.Repeat("a", max(0, 1-len(text)))
	}
	least, longest := int(s.MinLength), most(s.MaxLength, 255)
	length := least + m.IntN(min(longest-least, 12)+1)
	if m.often(0.02) {
		length = longest
	}
	runes := make([]rune, length)
	for i := range runes {
		runes[i] = alphabet[m.IntN(len(alphabet))]
	}
	return string(runes)
}

func (m *requestMaker) number(s *openapi3.Schema) any {
	least, largest := -0x1p53, 0x1p53
	for bound, given := range map[*float64][2]*float64{&least: {s.Min, s.ExclusiveMin.Value}, &largest: {s.Max, s.ExclusiveMax.Value}} {
		if given[0] != nil {
			*bound = *given[0]
		} else if given[1] != nil {
			*bound = math.Nextafter(*given[1], -*bound)
		}
	}
	if s.Type.Is("number") {
		return least + m.Float64()*(largest-least)
	}
	least, largest = math.Ceil(least), math.Floor(largest)
	switch {
	case m.often(0.1):
		return int64(least)
	case m.often(0.7) && least <= 3 && largest >= 3:
		return int64(max(least, 0)) + m.Int64N(int64(min(largest, 12)-max(least, 0))+1)
	case largest >= 1<<63: // rounded up from the largest int64
		return int64(math.MaxInt64)
	}
	return int64(least + math.Floor(m.Float64()*(largest-least)))
}

func (m *requestMaker) object(s *openapi3.Schema, depth int) any {
	o := map[string]any{}
	for name, p := range s.Properties {
		if slices.Contains(s.Required, name) || m.often(0.4) {
			o[name] = m.value(p, name, depth+1)
		}
	}
	m.useKnownGroup(func(name string) bool { return s.Properties[name] != nil }, func(name, value string) { o[name] = value })
	if more := s.AdditionalProperties.Schema; more != nil && more.Value.Not == nil {
		for range m.IntN(3) {
			o[m.text(&openapi3.Schema{MinLength: 1})] = m.value(more, "", depth+1)
		}
	}
	return o
}

// anyValue returns any JSON value.
func (m *requestMaker) anyValue(depth int) any {
	switch n := m.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return m.often(0.5)
	case n == 2:
		return m.NormFloat64() * 1e9
	case n < 6 || depth == 0:
		return m.text(&openapi3.Schema{})
	case n == 6:
		return []any{m.anyValue(depth - 1), m.anyValue(depth - 1)}
	}
	return map[string]any{m.text(&openapi3.Schema{}): m.anyValue(depth - 1)}
}
