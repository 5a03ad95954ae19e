package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Callers choose keys and payloads, receivers the words of a failure: a terminal is not to obey them.
func TestTerminalControlCharactersAreEscaped(t *testing.T) {
	given := map[string]string{"a\x1b[2Jb\u009b31m\x7f": "line\nend\u202e\U000e0041\u200f ä"}
	for name, print := range map[string]func(*bytes.Buffer) error{
		"JSON": func(b *bytes.Buffer) error { return JSON(b, given) },
		"Line": func(b *bytes.Buffer) error { return Line(b, given) },
		"Text": func(b *bytes.Buffer) error {
			for k, v := range given {
				b.WriteString(Text(k + "\n" + v))
			}
			return nil
		},
	} {
		var b bytes.Buffer
		require.NoError(t, print(&b))
		i := strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) })
		assert.Truef(t, i < 0, "%s prints %q", name, b.String())
		if name == "Text" {
			continue
		}
		var read map[string]string
		err := json.Unmarshal(b.Bytes(), &read)
		assert.Truef(t, err == nil && len(read) == 1 && read["a\x1b[2Jb\u009b31m\x7f"] == given["a\x1b[2Jb\u009b31m\x7f"],
			"%s is read as %q, %v", name, read, err)
	}
}
