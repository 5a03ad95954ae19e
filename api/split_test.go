package api

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
			require.Equalf(t, workflow.TooLarge, workflow.CodeOf(err), "%q: %v", lines, err)
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
		require.Truef(t, err == nil && len(byArray) == len(byLine),
			"%q: %d lines, %d elements, %v", lines, len(byLine), len(byArray), err)
		for i := range byLine {
			assert.Equalf(t, string(byArray[i]), string(byLine[i]), "item %d is the line and the element", i)
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
			code := workflow.CodeOf(err)
			assert.Equalf(t, 400, code.Info().Status, "%q: %v", item, err)
			p := transitions.ProblemOf(err)
			assert.Truef(t, len(p.JSON()) <= 2000, "%q: the problem document has %d bytes", item, len(p.JSON()))
			return
		}
		assert.Truef(t, cmd.IfVersion >= 0 && len(cmd.Payload) <= len(item), "%q: %+v", item, cmd)
	})
}
