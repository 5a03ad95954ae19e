package demo

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// told are the members of a command's status that the story is about.
var told = []string{"status", "attempt", "failures", "failure", "code"}

// brief is a status without the rest of its members.
func brief(status []byte) (string, error) {
	var all map[string]jsontext.Value
	if err := json.Unmarshal(status, &all); err != nil {
		return "", fmt.Errorf("the status cannot be read: %w", err)
	}
	var text strings.Builder
	for _, name := range told {
		if value, ok := all[name]; ok {
			fmt.Fprintf(&text, "%q:%s,", name, value)
		}
	}
	return "{" + text.String() + "…}", nil
}

// follow reads the statuses of a command as server-sent events, to the final
// one, and calls seen with each of them.
func (s *story) follow(ctx context.Context, location string, seen func()) (last answer, err error) {
	r := get(location).with("Accept", "text/event-stream")
	s.showRequest(r)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	resp, err := s.begin(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or given up
	s.received("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event", "id":
			s.received("%s", lines.Text())
		case "data":
			last = answer{status: resp.StatusCode, body: []byte(value)}
			text, err := brief(last.body)
			if err != nil {
				return last, err
			}
			s.received("data: %s", text)
			seen()
		}
	}
	return last, lines.Err()
}
