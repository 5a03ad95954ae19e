package streamtest

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:embed bad_messages.txt
var badMessages string // as Go writes strings

// BadMessages are what a client must not send: more choices in a filter than 64, and an id
// of more than 64 bytes among them.
func BadMessages() []string {
	list := []string{
		`{"op":"subscribe","id":"a","after":1,"filter":{"states":[` + strings.Repeat(`"x",`, 64) + `"x"]}}`,
		`{"op":"subscribe","id":"` + strings.Repeat("x", 65) + `","after":1}`,
		`{"op":"subscribe","id":"a","after":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
		`{"op":"watch","id":"w","scope":"s","key":"` + strings.Repeat("k", 256) + `"}`,
		`{"op":"watch","id":"w","scope":"` + strings.Repeat("s", 256) + `","key":"k"}`,
	}
	for line := range strings.Lines(badMessages) {
		message, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
		if err != nil {
			panic(line)
		}
		list = append(list, message)
	}
	return list
}
