package flags

import (
	"bytes"
	"errors"
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
