package api

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func FuzzArrayAndLinesSplitAlike(f *testing.F) {
	for _, s := range []string{
		`{"a":1}`, `1 2`, `{"a":1,"a":2}`, "\"\xff\"", `[`, `]`, `{"a":[{}]}` + "\n" + `null`, "\n\n", `"a` + "\n" + `b"`, `1e400`, `,`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		byLine, err := splitLines(lines, 100)
		if err != nil {
			if workflow.CodeOf(err) != workflow.TooLarge {
				t.Fatalf("%q: %v", lines, err)
			}
			return
		}
		for _, line := range byLine {
			v := jsontext.Value(bytes.Clone(line))
			if !v.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
				return // a line that is not JSON makes an array that is none
			}
		}
		array := append(append([]byte{'['}, bytes.Join(byLine, []byte(","))...), ']')
		byArray, err := splitArray(array, 100)
		if err != nil || len(byArray) != len(byLine) {
			t.Fatalf("%q: %d lines, %d elements, %v", lines, len(byLine), len(byArray), err)
		}
		for i := range byLine {
			if !bytes.Equal(byLine[i], byArray[i]) {
				t.Errorf("item %d is the line %q and the element %q", i, byLine[i], byArray[i])
			}
		}
	})
}

func FuzzCommandOfABulkRequest(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"workflow":"w","transition":"t","key":"k","payload":{"a":1},"if_version":3}`, `{"instance":"x"}`,
		`{"workflow":"w","scope":""}`, `{"workflow":"w","if_version":-1}`, `{"workflow":"w","payload":[[[[]]]]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, item []byte) {
		cmd, err := commandOf(item)
		if err != nil {
			if code := workflow.CodeOf(err); code.Info().Status != 400 {
				t.Errorf("%q: %v", item, err)
			}
			if p := transitions.ProblemOf(err); len(p.JSON()) > 2000 {
				t.Errorf("%q: the problem document has %d bytes", item, len(p.JSON()))
			}
			return
		}
		if cmd.IfVersion < 0 || len(cmd.Payload) > len(item) {
			t.Errorf("%q: %+v", item, cmd)
		}
	})
}
