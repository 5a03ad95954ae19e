package api_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Texts that parsers tend to fail on. Those of addresses are escaped.
var (
	badInAddress = []string{"", "%00", "a%00b", "%FF", "%ED%A0%80", "..", "%2E%2E", "%2F%2F", "%25%30%30", "'", "%22", "*", "-1", "0",
		"00000000-0000-0000-0000-000000000000", "{id}", "null", "true", "1e400", "%F0%9F%98%80", "%0D%0A", "%zz", "+", "a;b", "01", "1.0",
		"9223372036854775808", "NaN", "TRUE", "start", "now", "2030-01-31T12:00:00+25:00", "0000-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999Z", strings.Repeat("a", 256), strings.Repeat("%C3%A4", 200), strings.Repeat("a", 5000)}
	badInHeader = []string{"", " ", `"`, `"a`, `\`, "\xff", "ä", "a,b", ";", "*", `W/"1"`, `"0"`, `"-1"`, `"99999999999999999999"`, "-1",
		"0", "1e9", "forever", "2030-01-31", "0000-01-01T00:00:00Z", "a\tb", strings.Repeat("ä", 200), strings.Repeat(`"`, 300),
		strings.Repeat("x", 9000)}
	badInJSON = []string{"null", "true", "0", "-1", "1.5", "1e400", "9007199254740993", "99999999999999999999", "01", "NaN", "[]", "{}",
		`""`, `"x"`, `"\u0000"`, "\"\x00\"", "\"\xff\"", `"\ud800"`, `"\x"`, "'x'", "", "}", ",", `"`, `"1"`, `"2030-02-30T00:00:00Z"`,
		`"00000000-0000-0000-0000-000000000000"`, `{"":""}`, `{"a":1,"a":2}`, "\ufeff1", `"` + strings.Repeat("ä", 70_000) + `"`,
		strings.Repeat("9", 5000), strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "[" + strings.Repeat("0,", 20_000) + "0]"}
	badMedia = []string{"", "text/plain", "application/json; charset=utf-16", "application/json;;;", "application/x-ndjson",
		"application/x-www-form-urlencoded", "*/*"}
	// readHeaders are headers that the server reads, of some routes without a declaration.
	readHeaders = []string{"Accept", "Prefer", "If-Match", "If-None-Match", "Pawl-Not-Before", "Pawl-Happened-At", "Pawl-Replay-For",
		"Pawl-Tombstone-For", "Pawl-Reason", "Pawl-Actor", "Pawl-Tenant", "Pawl-Roles", "Idempotency-Key", "Idempotency-Scope",
		"X-Request-Id", "Traceparent", "Origin", "Cookie"}
)

// breakRequest adds one or two defects to r.
func (m *requestMaker) breakRequest(r *madeRequest) {
	for len(r.defects) == 0 || m.often(0.2) {
		switch n := m.IntN(10); {
		case n == 0 && len(r.values) > 0:
			name := m.choose(slices.Sorted(maps.Keys(r.values)))
			r.values[name] = m.choose(badInAddress)
			r.defects = append(r.defects, "path "+name)
		case n < 3:
			r.query = m.breakPair(r, r.query, append(parameterNames(r), "unknown"), badInAddress)
		case n < 4:
			r.header = m.breakPair(r, r.header, readHeaders, badInHeader)
		case n < 5:
			r.encode()
			r.media = m.choose(badMedia)
			r.defects = append(r.defects, "media "+r.media)
		case r.media != "":
			r.value, r.broken = m.replaceValue(r.value), m.choose(badInJSON)
			r.defects = append(r.defects, "a value")
		}
	}
}

func parameterNames(r *madeRequest) (names []string) {
	for _, p := range r.Parameters {
		if p.Value.In == "query" {
			names = append(names, p.Value.Name)
		}
	}
	return names
}

// breakPair repeats or changes a query parameter or a header, or adds another one.
func (m *requestMaker) breakPair(r *madeRequest, pairs [][2]string, names, values []string) [][2]string {
	pair := [2]string{m.choose(names), m.choose(values)}
	if n := len(pairs); n > 0 && m.often(0.8) {
		at := m.IntN(n)
		pair[0] = pairs[at][0]
		if m.often(0.6) {
			pairs = slices.Delete(pairs, at, at+1)
		}
	}
	r.defects = append(r.defects, "changed "+pair[0])
	return append(pairs, pair)
}

// replaceValue replaces a value, mostly one inside v, with brokenValue, or adds or removes a member.
func (m *requestMaker) replaceValue(v any) any {
	switch v := v.(type) {
	case []any:
		if i := m.IntN(len(v) + 1); i < len(v) {
			v[i] = m.replaceValue(v[i])
			return v
		}
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		switch n := m.IntN(8); {
		case n == 0:
			v[m.choose([]string{"more", "", "\x00", "id", "op", "__proto__", "$ref"})] = m.anyValue(1)
			return v
		case len(names) == 0 || n == 1:
		case n == 2:
			delete(v, m.choose(names))
			return v
		default:
			name := m.choose(names)
			v[name] = m.replaceValue(v[name])
			return v
		}
	}
	return brokenValue
}

// knownValues holds values for parameters and members by name: given ones, and those of answers. It is safe for concurrent use.
type knownValues struct {
	mu     sync.Mutex
	byName map[string][]any
}

// knownGroups are names whose values identify something together. The value of a group has its parts separated by a NUL,
// its name has the names separated by a space.
var knownGroups = [][]string{{"scope", "key"}, {"consumer", "message", "hash"}}

// learntNames maps members of answers to the names of the parameters that they are values of.
var learntNames = map[string][]string{"id": {"id", "instance", "api_key"}, "instance": {"id", "instance"}, "next": {"cursor"},
	"key": {"key"}, "scope": {"scope"}, "business_key": {"business_key"}, "state": {"state"}, "type": {"type"}, "message": {"message"},
	"hash": {"hash"}}

// pick returns a value of a name, nil for none.
func (k *knownValues) pick(random *rand.Rand, name string) any {
	k.mu.Lock()
	defer k.mu.Unlock()
	if all := k.byName[name]; len(all) > 0 {
		return all[random.IntN(len(all))]
	}
	return nil
}

func (k *knownValues) add(random *rand.Rand, name, value string) {
	const maxValues = 300
	k.mu.Lock()
	defer k.mu.Unlock()
	if all := k.byName[name]; len(all) >= maxValues {
		all[random.IntN(len(all))] = value
	} else if value != "" && !slices.ContainsFunc(all, func(v any) bool { text, _ := v.(string); return text == value }) {
		k.byName[name] = append(all, value)
	}
}

// learn adds the values of an answer.
func (k *knownValues) learn(random *rand.Rand, h http.Header, body []byte) {
	k.add(random, "If-None-Match", h.Get("ETag"))
	k.add(random, "If-Match", h.Get("ETag"))
	var answer any
	if strings.Contains(h.Get("Content-Type"), "json") && json.Unmarshal(body, &answer) == nil {
		k.learnValue(random, answer)
	}
}

func (k *knownValues) learnValue(random *rand.Rand, v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v[:min(len(v), 5)] {
			k.learnValue(random, item)
		}
	case map[string]any:
		for _, names := range knownGroups {
			var values []string
			for _, name := range names {
				if text, is := v[name].(string); is {
					values = append(values, text)
				}
			}
			if len(values) == len(names) {
				k.add(random, strings.Join(names, " "), strings.Join(values, "\x00"))
			}
		}
		for name, member := range v {
			text, isText := member.(string)
			if !isText {
				k.learnValue(random, member)
				continue
			}
			for _, asked := range learntNames[name] {
				k.add(random, asked, text)
			}
		}
	}
}
