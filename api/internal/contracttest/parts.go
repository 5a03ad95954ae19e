package contracttest

import (
	"net/url"
	"strings"
)

// Parts are what stands in a path, as it was sent, where a pattern of http.ServeMux has names; without their escapes.
func Parts(pattern, path string) map[string]string {
	parts := map[string]string{}
	given := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range strings.Split(strings.TrimPrefix(pattern, "/"), "/") {
		name, is := strings.CutPrefix(part, "{")
		if !is || i >= len(given) {
			continue
		}
		name = strings.TrimSuffix(name, "}")
		text := given[i]
		if rest, all := strings.CutSuffix(name, "..."); all {
			name, text = rest, strings.Join(given[i:], "/")
		}
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
		parts[name] = text
	}
	return parts
}

// sample is a value of a part of a path, or something in its place where it has what the validators read as more than one.
func sample(value string) string {
	if value == "" || value != url.PathEscape(value) {
		return "sample"
	}
	return value
}
