package contracttest

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Known is what is there to be asked about, by the names that parameters and members have for it: what a test begins with,
// and what answers told. It is for many goroutines.
type Known struct {
	patterns map[string][]string // texts that match a pattern
	avoided  []string

	mu     sync.Mutex
	values map[string][]any
	tuples map[string][][]string // by the names of what is known together, joined
}

// together are names that mean something with each other.
var together = [][]string{{"scope", "key"}, {"consumer", "message", "hash"}}

// maxKnown is how many values of a name are kept.
const maxKnown = 300

// NewKnown begins with values by name, and with texts that match the patterns of a document. What is avoided is not learnt.
func NewKnown(values map[string][]any, patterns map[string][]string, avoided ...string) *Known {
	return &Known{patterns: patterns, avoided: avoided, values: values, tuples: map[string][][]string{}}
}

func (k *Known) pick(random *rand.Rand, name string) (any, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.values[name]
	if len(all) == 0 {
		return nil, false
	}
	return clone(all[random.IntN(len(all))]), true
}

// clone is a value for somebody who will change it.
func clone(v any) any {
	o, is := v.(map[string]any)
	if !is {
		return v
	}
	out := map[string]any{}
	for name, member := range o {
		out[name] = clone(member)
	}
	return out
}

// pickTogether returns what is known under some names together, nil for nothing.
func (k *Known) pickTogether(random *rand.Rand, names []string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.tuples[strings.Join(names, " ")]
	if len(all) == 0 {
		return nil
	}
	return all[random.IntN(len(all))]
}

// learnt are the members of answers that are kept, with the names under which they are asked for.
var learnt = map[string][]string{"id": {"id", "instance"}, "instance": {"id", "instance"}, "key": {"key"}, "scope": {"scope"},
	"next": {"cursor"}, "business_key": {"business_key"}, "state": {"state"}, "type": {"type"}, "message": {"message"}, "hash": {"hash"}}

// Learn keeps what an answer tells of things that are there.
func (k *Known) Learn(random *rand.Rand, h http.Header, body []byte) {
	if tag := h.Get("ETag"); tag != "" {
		k.add(random, "If-None-Match", tag)
		k.add(random, "If-Match", tag)
	}
	var answer any
	if !strings.Contains(h.Get("Content-Type"), "json") || json.Unmarshal(body, &answer) != nil {
		return
	}
	k.learn(random, answer, 0)
}

func (k *Known) learn(random *rand.Rand, v any, depth int) {
	switch v := v.(type) {
	case []any:
		for _, item := range v[:min(len(v), 5)] {
			k.learn(random, item, depth+1)
		}
	case map[string]any:
		k.learnTogether(random, v)
		for name, member := range v {
			if text, is := member.(string); !is {
				k.learn(random, member, depth+1)
			} else if name == "id" && len(text) != len("00000000-0000-0000-0000-000000000000") {
				k.add(random, "api_key", text)
			} else {
				for _, asked := range learnt[name] {
					k.add(random, asked, text)
				}
			}
		}
	}
}

func (k *Known) learnTogether(random *rand.Rand, v map[string]any) {
	for _, names := range together {
		var tuple []string
		for _, name := range names {
			if text, is := v[name].(string); is {
				tuple = append(tuple, text)
			}
		}
		if len(tuple) == len(names) {
			k.addTogether(random, strings.Join(names, " "), tuple)
		}
	}
}

func (k *Known) addTogether(random *rand.Rand, names string, tuple []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if all := k.tuples[names]; len(all) >= maxKnown {
		all[random.IntN(len(all))] = tuple
	} else if !slices.ContainsFunc(all, func(t []string) bool { return slices.Equal(t, tuple) }) {
		k.tuples[names] = append(all, tuple)
	}
}

func (k *Known) add(random *rand.Rand, name, value string) {
	if value == "" || slices.Contains(k.avoided, value) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if all := k.values[name]; len(all) >= maxKnown {
		all[random.IntN(len(all))] = value
	} else if !slices.Contains(all, any(value)) {
		k.values[name] = append(all, value)
	}
}
