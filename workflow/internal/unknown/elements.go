package unknown

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// elements keeps what is unknown of an array's elements. Most arrays have nothing of that.
func (k *keeper) elements(t reflect.Type, path string, v versions[jsontext.Value]) (jsontext.Value, error) {
	a, ok, err := decode[[]jsontext.Value](v, '[')
	if !ok || err != nil || len(a.stored) != len(a.before) {
		return v.written, err
	}
	elem, changed := t.Elem(), false
	path += "/*"
	kept := make([]jsontext.Value, len(a.stored))
	for i, read := range a.before { // as if nothing had happened
		if kept[i], err = k.value(elem, path, versions[jsontext.Value]{a.stored[i], read, read, read}); err != nil {
			return nil, err
		}
		changed = changed || !bytes.Equal(kept[i], read)
	}
	if !changed {
		return v.written, nil
	}
	m := newMatching(a.before, kept, a.after)
	if t.Kind() == reflect.Array {
		m.findFixed()
	} else if !m.find() {
		return nil, &Ambiguous{path}
	}
	for j, i := range m.from {
		if i < 0 {
			continue
		}
		of := versions[jsontext.Value]{a.stored[i], a.before[i], a.after[j], a.written[j]}
		if a.written[j], err = k.value(elem, path, of); err != nil {
			return nil, err
		}
	}
	return encoded(a.written)
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

// findFixed matches the elements of an array of fixed length. To that nothing is added and nothing removed, and the place says
// which element it is, unless one that is as it was stands elsewhere now.
func (m *matching) findFixed() {
	m.stay(func(i int) bool { return bytes.Equal(m.read[i], m.is[i]) })
	m.same()
	m.stay(func(i int) bool { return m.gone[i] && m.from[i] < 0 })
	m.pair(m.left(0, len(m.read)), m.added(0, len(m.is)))
}

// stay matches those with themselves that are where they were.
func (m *matching) stay(is func(i int) bool) {
	for i := range m.read {
		if is(i) {
			m.match(i, i)
		}
	}
}

// unknown reports whether something of the element is.
func (m *matching) unknown(i int) bool { return !bytes.Equal(m.kept[i], m.read[i]) }

func (m *matching) match(i, j int) { m.from[j], m.gone[i] = i, false }

// same matches those that are as they were. false: of several that look the same some are gone,
// and what is unknown of them differs; or there are more now, and which the new ones are is open.
func (m *matching) same() bool {
	were, are, certain := map[string][]int{}, map[string][]int{}, true
	for _, i := range m.left(0, len(m.read)) {
		were[string(m.read[i])] = append(were[string(m.read[i])], i)
	}
	for _, j := range m.added(0, len(m.is)) {
		are[string(m.is[j])] = append(are[string(m.is[j])], j)
	}
	for v, places := range are {
		old := were[v]
		n := min(len(old), len(places))
		switch {
		case len(old) > n && slices.ContainsFunc(old, func(i int) bool { return !bytes.Equal(m.kept[i], m.kept[old[0]]) }),
			len(places) > n && slices.ContainsFunc(old, m.unknown) && !slices.Equal(old, places[:n]):
			certain = false
		}
		for k := range n {
			m.match(old[k], places[k])
		}
	}
	return certain
}

// inPlace matches those that have changed, between two that have not. false: it is open which
// they were.
func (m *matching) inPlace() bool {
	were, are := m.left(0, len(m.read)), m.added(0, len(m.is))
	switch {
	case len(are) == 0 || !slices.ContainsFunc(were, m.unknown):
		return true // all that have gone were removed, or nothing is unknown of them
	case !m.ordered():
		return len(were) == 1 && slices.Equal(were, are) && m.pair(were, are)
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
