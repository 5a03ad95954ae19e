package contracttest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// raw is text that is inserted into JSON unchanged, valid or not.
type raw string

// value is one that a schema allows. Name is of the parameter or the member that it is for.
func (m *Maker) value(schema any, name string, depth int) any {
	s, is := schema.(map[string]any)
	if !is || depth > 8 {
		return m.anything(2)
	}
	if to, is := s["$ref"].(string); is {
		return m.value(m.schemas[to[strings.LastIndex(to, "/")+1:]], name, depth+1)
	}
	if c, is := s["const"]; is {
		return c
	}
	if all, is := s["enum"].([]any); is {
		return all[m.IntN(len(all))]
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if of, is := s[word].([]any); is {
			return m.value(of[m.IntN(len(of))], name, depth+1)
		}
	}
	if known, is := m.known(s, name); is {
		return known
	}
	switch m.typeOf(s) {
	case "string":
		return m.aText(s)
	case "integer":
		return m.integer(s)
	case "number":
		return m.number(s)
	case "boolean":
		return m.often(0.5)
	case "null":
		return nil
	case "array":
		return m.array(s, name, depth)
	case "object":
		return m.object(s, depth)
	}
	return m.anything(3)
}

func (m *Maker) typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		return t[m.IntN(len(t))].(string)
	}
	return ""
}

// known is something that is there by this name, mostly, where there is one.
func (m *Maker) known(s map[string]any, name string) (any, bool) {
	v, is := m.Known.pick(m.Rand, name)
	if !is || !m.often(0.75) {
		return nil, false
	}
	_, text := v.(string)
	if t := m.typeOf(s); t == "" || (t == "string") == text && t != "array" && t != "boolean" {
		return v, true
	}
	return nil, false
}

// alphabet has what is escaped somewhere, and letters of several bytes.
var alphabet = []rune("abcXYZ019 -_.:/%&=+?#\"'\\<>;,äß€😀漢")

func (m *Maker) aText(s map[string]any) string {
	switch s["format"] {
	case "date-time":
		return time.Now().Add(time.Duration(m.Int64N(int64(48*time.Hour))) - 24*time.Hour).UTC().Format(time.RFC3339Nano)
	case "uuid":
		return m.uuid()
	}
	if pattern, is := s["pattern"].(string); is {
		return m.matching(pattern)
	}
	least, most := int(numberOf(s, "minLength", 0)), int(numberOf(s, "maxLength", 255))
	length := least + m.IntN(min(most-least, 12)+1)
	if m.often(0.02) {
		length = most
	}
	var b strings.Builder
	for range length {
		b.WriteRune(alphabet[m.IntN(len(alphabet))])
	}
	return b.String()
}

func (m *Maker) uuid() string {
	return fmt.Sprintf("%08x-%04x-7%03x-8%03x-%012x", m.Uint32(), m.IntN(1<<16), m.IntN(1<<12), m.IntN(1<<12), m.Int64N(1<<48))
}

// matching is a text that matches a pattern: one of those that are known for it.
func (m *Maker) matching(pattern string) string {
	all := m.Known.patterns[pattern]
	if len(all) == 0 {
		return "a"
	}
	return all[m.IntN(len(all))]
}

func (m *Maker) integer(s map[string]any) any {
	least, most := numberOf(s, "minimum", -1<<53), numberOf(s, "maximum", 1<<53)
	switch {
	case m.often(0.1):
		return int64(least)
	case m.often(0.1):
		return largest(most)
	case m.often(0.7) && least <= 3 && most >= 3:
		return int64(max(least, 0)) + m.Int64N(int64(min(most, 12)-max(least, 0))+1)
	}
	return largest(least + math.Floor(m.Float64()*(most-least)))
}

// largest is an integer as large as a double, which rounds that of 64 bits up.
func largest(most float64) int64 {
	if most >= 1<<63 {
		return math.MaxInt64
	}
	return int64(most)
}

func (m *Maker) number(s map[string]any) any {
	least, most := numberOf(s, "minimum", -1e6), numberOf(s, "maximum", 1e6)
	return least + m.Float64()*(most-least)
}

func numberOf(s map[string]any, word string, otherwise float64) float64 {
	for given, by := range map[string]float64{word: 0, "exclusive" + strings.ToUpper(word[:1]) + word[1:]: 1} {
		if n, is := s[given].(float64); is {
			if strings.HasPrefix(word, "max") {
				by = -by
			}
			return n + by
		}
	}
	return otherwise
}

func (m *Maker) array(s map[string]any, name string, depth int) any {
	least, most := int(numberOf(s, "minItems", 0)), int(numberOf(s, "maxItems", 3))
	list := []any{}
	for range least + m.IntN(min(most-least, 3)+1) {
		list = append(list, m.value(s["items"], name, depth+1))
	}
	return list
}

func (m *Maker) object(s map[string]any, depth int) any {
	o := map[string]any{}
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		if slices.Contains(required, any(name)) || m.often(0.4) {
			o[name] = m.value(p, name, depth+1)
		}
	}
	m.together(func(name string) bool { return properties[name] != nil }, func(name, value string) { o[name] = value })
	if more, is := s["additionalProperties"].(map[string]any); is && more["not"] == nil {
		for range m.IntN(3) {
			o[m.aText(map[string]any{"minLength": 1.0})] = m.value(more, "", depth+1)
		}
	}
	return o
}

// anything is any JSON.
func (m *Maker) anything(depth int) any {
	switch n := m.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return m.often(0.5)
	case n == 2:
		return m.Int64N(1000) - 500
	case n == 3:
		return m.NormFloat64() * 1e9
	case n < 6 || depth == 0:
		return m.aText(nil)
	case n == 6:
		list := []any{}
		for range m.IntN(4) {
			list = append(list, m.anything(depth-1))
		}
		return list
	}
	o := map[string]any{}
	for range m.IntN(4) {
		o[m.aText(nil)] = m.anything(depth - 1)
	}
	return o
}
