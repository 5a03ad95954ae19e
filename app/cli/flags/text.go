package flags

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/app/usage"
)

// JSON checks that a text is JSON; name is what help calls it. Error: a *usage.Error that says where it is not.
func JSON(name string, text []byte) (jsontext.Value, error) {
	var v jsontext.Value
	err := json.Unmarshal(text, &v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err == nil {
		return v, nil
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, usage.Errorf("%s is empty, and not JSON", name)
	}
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return nil, usage.Errorf("%s is not JSON: %w", name, err)
	}
	before := text[:min(int(wrong.ByteOffset), len(text))]
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return nil, usage.Errorf("%s is not JSON: line %d, column %d: %w", name, bytes.Count(before, []byte("\n"))+1, column, wrong.Err)
}

// Nearest suggests a replacement for an unknown name: the most similar one, otherwise the list of names.
func Nearest(name string, names []string) string {
	best, least, longest := "", len(name)/2, 0
	for _, n := range names {
		d, begin := distance(strings.ToLower(name), strings.ToLower(n)), begins(name, n)
		if d < least || d == least && begin > longest {
			best, least, longest = n, d, begin
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %s?", best)
	case len(names) == 0:
		return "there is none"
	}
	return "there are: " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// begins is how many bytes at their beginning two names have in common.
func begins(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// distance is how many letters have to be put in, left out or changed to make one of the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
