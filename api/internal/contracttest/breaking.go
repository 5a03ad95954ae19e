package contracttest

import (
	"maps"
	"slices"
	"strings"
)

// breaker does something to a draft that its document does not allow, or may not; it says what, "" for nothing.
type breaker func(*Maker, *draft) string

var breakers = []breaker{
	(*Maker).breakPath, (*Maker).breakQuery, (*Maker).breakQuery, (*Maker).breakHeader, (*Maker).breakMedia,
	(*Maker).breakValue, (*Maker).breakValue, (*Maker).breakValue, (*Maker).breakText, (*Maker).breakMembers,
}

func (m *Maker) breakOne(d *draft) string {
	for {
		if what := breakers[m.IntN(len(breakers))](m, d); what != "" {
			return what
		}
	}
}

// inPaths and inQueries are parts of an address, with their escapes, that break what reads them.
var (
	inPaths = []string{"%00", "a%00b", "%FF", "%C3%28", "%ED%A0%80", "..", "%2E%2E", ".", "%2F", "%2F%2F", "%20", "%25", "%25%30%30",
		"'", "%22", ";", "*", "-1", "0", "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "{id}",
		"null", "true", "1e400", "%E2%80%AE", "%F0%9F%98%80", "%EF%BF%BF", "%0A", "%0D%0A",
		strings.Repeat("a", 256), strings.Repeat("%C3%A4", 200), strings.Repeat("a", 5000)}
	inQueries = slices.Concat(inPaths, []string{"", "%zz", "%", "+", "a;b", "a%26b", "-0", "01", "1.0", "+1", "0x1",
		"9223372036854775808", "-9223372036854775809", "99999999999999999999999999", "NaN", "TRUE", "yes", "start", "now",
		"2030-01-31", "2030-01-31T12:00:00+25:00", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"})
	inHeaders = []string{"", " ", `"`, `"a`, `\`, "\xff", "\xc3\x28", "ä", "😀", "a,b", ";", "*", `W/"1"`, `"0"`, `"-1"`,
		`"99999999999999999999"`, "-1", "0", "1e9", "forever", "2030-01-31", "0000-01-01T00:00:00Z", "\t", "a\tb",
		strings.Repeat("a", 256), strings.Repeat("ä", 200), strings.Repeat(`"`, 300), strings.Repeat("x", 9000)}
	otherMedia = []string{"", "text/plain", "application/json; charset=utf-16", "application/json;;;", "APPLICATION/JSON", "application/xml",
		"application/x-ndjson", "application/x-www-form-urlencoded", "multipart/form-data", "json", "*/*"}
)

func (m *Maker) one(all []string) string { return all[m.IntN(len(all))] }

func (m *Maker) breakPath(d *draft) string {
	if len(d.path) == 0 {
		return ""
	}
	name := m.one(slices.Sorted(maps.Keys(d.path)))
	d.path[name] = m.one(inPaths)
	return "path " + name
}

func (m *Maker) breakQuery(d *draft) string {
	var names []string
	for _, p := range d.o.parameters {
		if p.in == "query" {
			names = append(names, p.name)
		}
	}
	name := "unknown"
	if len(names) > 0 && m.often(0.9) {
		name = m.one(names)
	}
	at := slices.IndexFunc(d.query, func(q [2]string) bool { return q[0] == name })
	switch {
	case at < 0:
		d.query = append(d.query, [2]string{name, m.one(inQueries)})
	case m.often(0.2):
		d.query = slices.Delete(d.query, at, at+1)
		return "no query " + name
	case m.often(0.3):
		d.query = append(d.query, d.query[at])
		return "twice query " + name
	default:
		d.query[at][1] = m.one(inQueries)
	}
	return "query " + name
}

// undeclared headers that are read nevertheless.
var undeclared = []string{"Accept", "Prefer", "If-Match", "If-None-Match", "Pawl-Not-Before", "Pawl-Happened-At", "Pawl-Replay-For",
	"Pawl-Tombstone-For", "Pawl-Reason",
	"Pawl-Actor", "Pawl-Tenant", "Pawl-Roles", "Idempotency-Key", "Idempotency-Scope", "X-Request-Id", "Traceparent", "Origin", "Cookie"}

func (m *Maker) breakHeader(d *draft) string {
	if len(d.header) == 0 || m.often(0.2) {
		name := m.one(undeclared)
		d.header = append(d.header, [2]string{name, m.one(inHeaders)})
		return "header " + name
	}
	at := m.IntN(len(d.header))
	name := d.header[at][0]
	switch {
	case m.often(0.3):
		d.header = slices.Delete(d.header, at, at+1)
		return "no header " + name
	case m.often(0.2):
		d.header = append(d.header, [2]string{name, m.one(inHeaders)})
		return "twice header " + name
	}
	d.header[at][1] = m.one(inHeaders)
	return "header " + name
}

func (m *Maker) breakMedia(d *draft) string {
	if d.media == "" {
		d.media, d.body = "application/json", []byte("{}")
		return "a body"
	}
	if d.body == nil {
		d.body = appendJSON(nil, d.value)
	}
	d.media = m.one(otherMedia)
	return "media " + d.media
}

// inJSON are replacements for a JSON value: other types, too large values, and missing ones.
var inJSON = []raw{"null", "true", "0", "-1", "1.5", "1e400", "-1e400", "9007199254740993", "99999999999999999999", "01", "NaN",
	"[]", "{}", "[[]]", `""`, `"x"`, `"\u0000"`, `"a\u0000b"`, "\"\x00\"", "\"\xff\"", "\"\xc3\x28\"", `"\ud800"`,
	`"\udc00\ud800"`, `"\x"`, "'x'", "", "}", "]", ",", `"`, `"1"`,
	`"2030-02-30T00:00:00Z"`, `"00000000-0000-0000-0000-000000000000"`, `{"":""}`, `{"a":1,"a":2}`, "/*x*/1",
	"\ufeff1", raw(`"` + strings.Repeat("x", 300) + `"`), raw(`"` + strings.Repeat("ä", 70_000) + `"`), raw(strings.Repeat("9", 5000)),
	raw(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), raw(strings.Repeat(`{"a":`, 5000)),
	raw("[" + strings.Repeat("0,", 20_000) + "0]")}

// breakValue puts something else in the place of a value.
func (m *Maker) breakValue(d *draft) string {
	if d.value == nil {
		return ""
	}
	d.value = m.replaced(d.value)
	return "a value"
}

func (m *Maker) replaced(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 && m.often(0.8) {
			i := m.IntN(len(v))
			v[i] = m.replaced(v[i])
			return v
		}
	case map[string]any:
		if len(v) > 0 && m.often(0.8) {
			name := m.one(slices.Sorted(maps.Keys(v)))
			v[name] = m.replaced(v[name])
			return v
		}
	}
	return inJSON[m.IntN(len(inJSON))]
}

// breakMembers takes a member away, or adds one, or one again.
func (m *Maker) breakMembers(d *draft) string {
	o, is := d.value.(map[string]any)
	if list, of := d.value.([]any); of && len(list) > 0 {
		o, is = list[m.IntN(len(list))].(map[string]any)
	}
	if !is {
		return ""
	}
	switch {
	case len(o) > 0 && m.often(0.5):
		name := m.one(slices.Sorted(maps.Keys(o)))
		delete(o, name)
		return "no member " + name
	case len(o) > 0 && m.often(0.3):
		name := m.one(slices.Sorted(maps.Keys(o)))
		o[strings.ToUpper(name)] = o[name]
	default:
		o[m.one([]string{"more", "", "\x00", "id", "op", "__proto__", "$ref"})] = m.anything(1)
	}
	return "a member more"
}

// breakText cuts the text of a body, or puts bytes into it.
func (m *Maker) breakText(d *draft) string {
	if d.media == "" {
		return ""
	}
	if d.body == nil {
		d.body = appendJSON(nil, d.value)
	}
	if len(d.body) == 0 || m.often(0.1) {
		d.body = []byte{}
		return "an empty body"
	}
	at := m.IntN(len(d.body))
	switch m.IntN(5) {
	case 0:
		d.body = d.body[:at]
		return "a body that is cut"
	case 1:
		d.body = append(d.body, d.body...)
		return "a body twice"
	case 2:
		d.body[at] = byte(m.IntN(256))
		return "another byte"
	case 3:
		d.body = append(d.body, strings.Repeat(" ", 1<<m.IntN(21))...)
		return "a long body"
	}
	d.body = slices.Insert(d.body, at, 0)
	return "a NUL in the body"
}
