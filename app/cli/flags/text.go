package flags

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/usage"
)

// JSON validates text, which help texts call name. It returns a *usage.Error with line and column.
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

// Nearest suggests a replacement for an unknown name: the most similar ones, otherwise the list of names.
func Nearest(name string, names []string) string {
	c := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, n := range names {
		c.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	near := c.SuggestionsFor(name)
	switch {
	case len(near) > 0:
		return "did you mean " + strings.Join(near, " or ") + "?"
	case len(names) == 0:
		return "there is none"
	}
	return "there are: " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}
