package stream

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// readServerSent reads one event as the HTML standard says, section 9.2.6, and
// the last event id after it.
func readServerSent(in *bufio.Scanner, lastID string) (data, id string, ok bool) {
	var lines []string
	id = lastID
	for in.Scan() {
		line := in.Text()
		if line == "" {
			if lines != nil {
				return strings.Join(lines, "\n"), id, true
			}
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			lines = append(lines, value)
		case "id":
			id = value
		}
	}
	return "", id, false
}

func TestSSE_IDAfterWholeTransition(t *testing.T) {
	var b []byte
	for e, more := range (&selection{}).from(someLog()) {
		b = appendServerSent(b, e.CloudEvent, e.Position, more)
	}
	b = appendComment(b, 99)
	in := bufio.NewScanner(bytes.NewReader(b))
	last := ""
	for i, want := range []string{"1", "1", "1", "2", "3"} {
		data, id, ok := readServerSent(in, last)
		assert.Truef(t, ok && data == string(someLog()[i].CloudEvent) && id == want,
			"event %d: %s, id %s, %t; want id %s", i, data, id, ok, want)
		last = id
	}
	_, id, ok := readServerSent(in, last)
	assert.Truef(t, !ok && id == "99", "after the comment: id %s, event %t", id, ok)
}

func TestServerSentEventsSurviveLineBreaks(t *testing.T) {
	for _, text := range []string{"{\n}", "{\r\n}", "{\r}", "{}\n", "{}"} {
		b := appendServerSent(nil, []byte(text), 7, false)
		in := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(string(b), "\r", "!")))
		data, id, ok := readServerSent(in, "")
		compact := strings.NewReplacer("\n", "").Replace(data)
		assert.Truef(t, ok && compact == "{}" && id == strconv.Itoa(7), "%q was read as %q, id %s, %t", text, data, id, ok)
	}
}
