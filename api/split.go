package api

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/internal/parse"
	"github.com/pawlhq/pawl/workflow"
)

// splitArray returns the elements of a JSON array. Errors within an element are left to its reader, as long as its end is clear.
func splitArray(body []byte, limit int) (items [][]byte, err error) {
	in := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if in.PeekKind() != '[' {
		return nil, workflow.Errorf(workflow.InvalidRequest, "the body is not a JSON array of commands")
	}
	if _, err := in.ReadToken(); err != nil {
		return nil, brokenArray(err)
	}
	for in.PeekKind() != ']' {
		item, err := in.ReadValue()
		if err != nil {
			return nil, brokenArray(err)
		}
		if len(items) == limit {
			return nil, tooMany(limit)
		}
		items = append(items, bytes.Clone(item)) // it is the decoder's until the next read
	}
	if _, err := in.ReadToken(); err != nil {
		return nil, brokenArray(err)
	}
	if _, err := in.ReadToken(); err != io.EOF {
		return nil, workflow.Errorf(workflow.InvalidRequest, "something follows the JSON array")
	}
	return items, nil
}

func brokenArray(err error) error {
	return &workflow.Error{Code: workflow.InvalidRequest, Message: "the body is not a JSON array of commands; nothing of it was submitted",
		Fields: []workflow.FieldError{parse.JSON(err)}}
}

// splitLines returns the lines that are not blank.
func splitLines(body []byte, limit int) (items [][]byte, err error) {
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(items) == limit {
			return nil, tooMany(limit)
		}
		items = append(items, line)
	}
	return items, nil
}

func tooMany(limit int) error {
	return workflow.Errorf(workflow.TooLarge, "the request has more than %d commands", limit)
}
