package unknown

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// elements keeps what is unknown of an array's elements. Most arrays have nothing of that.
func (k *keeper) elements(elem reflect.Type, path string, stored, before, after jsontext.Value) (jsontext.Value, error) {
	was, ok1, err1 := arrayOf(stored)
	read, ok2, err2 := arrayOf(before)
	is, ok3, err3 := arrayOf(after)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return nil, err
		}
	}
	if !ok1 || !ok2 || !ok3 || len(was) != len(read) {
		return after, nil
	}
	path += "/*"
	kept, changed := make([]jsontext.Value, len(was)), false
	for i := range was { // as if nothing had happened
		var err error
		if kept[i], err = k.value(elem, path, was[i], read[i], read[i]); err != nil {
			return nil, err
		}
		changed = changed || !bytes.Equal(kept[i], read[i])
	}
	if !changed {
		return after, nil
	}
	m := newMatching(read, kept, is)
	if !m.find() {
		return nil, &Ambiguous{path}
	}
	for j, i := range m.from {
		if i < 0 {
			continue
		}
		var err error
		if is[j], err = k.value(elem, path, was[i], read[i], is[j]); err != nil {
			return nil, err
		}
	}
	return encodeArray(is), nil
}

// matching says which element was which.
type matching struct {
	read, kept, is []jsontext.Value
	from           []int  // of each that is: which it was, -1 none
	gone           []bool // of each that was: it is none of those that are
}

func newMatching(read, kept, is []jsontext.Value) *matching {
	return &matching{read, kept, is, slices.Repeat([]int{-1}, len(is)), slices.Repeat([]bool{true}, len(read))}
}

// find matches what can be; false: something is open.
func (m *matching) find() bool { return m.same() && m.inPlace() }

// unknown reports whether something of the element is.
func (m *matching) unknown(i int) bool { return !bytes.Equal(m.kept[i], m.read[i]) }

func (m *matching) match(i, j int) { m.from[j], m.gone[i] = i, false }

// same matches those that are as they were. false: of several that look the same some are gone,
// and what is unknown of them differs.
func (m *matching) same() bool {
	were, are := map[string][]int{}, map[string][]int{}
	for i, v := range m.read {
		were[string(v)] = append(were[string(v)], i)
	}
	for j, v := range m.is {
		are[string(v)] = append(are[string(v)], j)
	}
	for v, places := range are {
		old := were[v]
		if len(places) < len(old) && slices.ContainsFunc(old, func(i int) bool { return !bytes.Equal(m.kept[i], m.kept[old[0]]) }) {
			return false
		}
		for n := range min(len(old), len(places)) {
			m.match(old[n], places[n])
		}
	}
	return true
}

// inPlace matches those that have changed, between two that have not. false: it is open which
// they were.
func (m *matching) inPlace() bool {
	were, are := m.left(0, len(m.read)), m.added(0, len(m.is))
	switch {
	case len(are) == 0 || !slices.ContainsFunc(were, m.unknown):
		return true // all that have gone were removed, or nothing is unknown of them
	case !m.ordered():
		return len(were) == 1 && m.pair(were, are)
	}
	i, j := 0, 0
	for end := 0; end <= len(m.is); end++ {
		until := len(m.read)
		if end < len(m.is) {
			if until = m.from[end]; until < 0 {
				continue
			}
		}
		if !m.pair(m.left(i, until), m.added(j, end)) {
			return false
		}
		i, j = until+1, end+1
	}
	return true
}

// ordered reports whether those that are as they were are also in the order in which they were.
func (m *matching) ordered() bool {
	last := -1
	for _, i := range m.from {
		if i >= 0 && i < last {
			return false
		}
		last = max(last, i)
	}
	return true
}

// left are those that were, from one place until another, and are matched with none.
func (m *matching) left(from, until int) (list []int) {
	for i := from; i < until; i++ {
		if m.gone[i] {
			list = append(list, i)
		}
	}
	return list
}

// added are those that are, likewise.
func (m *matching) added(from, until int) (list []int) {
	for j := from; j < until; j++ {
		if m.from[j] < 0 {
			list = append(list, j)
		}
	}
	return list
}

// pair matches elements that were with as many that are.
func (m *matching) pair(were, are []int) bool {
	if len(were) != len(are) {
		return false
	}
	for n := range were {
		m.match(were[n], are[n])
	}
	return true
}
