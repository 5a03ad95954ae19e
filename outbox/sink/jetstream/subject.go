package jetstream

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

type subject []string

// Placeholders in patterns.
const (
	tenantToken   = "{tenant}"
	workflowToken = "{workflow}"
	instanceToken = "{instance}"
	typeToken     = "{type}"
)

func parseSubject(pattern string) (subject, error) {
	tokens := strings.Split(pattern, ".")
	for i, token := range tokens {
		switch {
		case i > 0 && (token == tenantToken || token == workflowToken || token == instanceToken):
		case i > 0 && token == typeToken && i == len(tokens)-1:
		case token != "" && token == sink.Escape(token):
		default:
			return nil, fmt.Errorf("subject %q: invalid token %q", pattern, token)
		}
	}
	return tokens, nil
}

// wildcard returns a subject that matches all subjects of the pattern.
func (s subject) wildcard() string {
	tokens := make([]string, len(s))
	for i, token := range s {
		switch {
		case token == typeToken:
			token = ">"
		case token[0] == '{':
			token = "*"
		}
		tokens[i] = token
	}
	return strings.Join(tokens, ".")
}

// of returns the subject of an event. Different values result in different subjects.
func (s subject) of(e *transitions.Event) string {
	tokens := slices.Clone(s)
	for i, token := range tokens {
		switch token {
		case tenantToken:
			tokens[i] = escape(e.Tenant)
		case workflowToken:
			tokens[i] = escape(e.Workflow)
		case instanceToken:
			tokens[i] = e.Instance.String()
		case typeToken:
			parts := strings.Split(e.Type, ".")
			for n := range parts {
				parts[n] = escape(parts[n])
			}
			tokens[i] = strings.Join(parts, ".")
		}
	}
	return strings.Join(tokens, ".")
}

// escape returns a token for any text. "%" represents the empty text.
func escape(s string) string {
	if s == "" {
		return "%"
	}
	return sink.Escape(s)
}
