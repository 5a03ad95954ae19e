package contracttest

import (
	"encoding/json"
	"maps"
	"slices"
)

// appendJSON writes a value as JSON; what is raw as it is, so that the whole may be none.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case raw:
		return append(b, v...)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, name), ':')
			b = appendJSON(b, v[name])
		}
		return append(b, '}')
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("contracttest: " + err.Error())
	}
	return append(b, text...)
}
