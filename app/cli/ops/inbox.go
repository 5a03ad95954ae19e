package ops

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

var inboxOperations = []operation{
	{use: "list", short: "List messages that were not consumed",
		flags: []flagGroup{oneTenant("tenant of the messages"), text("consumer", "", "only those of this consumer"), workflowFlag,
			text("business-key", "", "only those for the instance with this business key, with --workflow"),
			text("status", string(inspect.MessageWaiting), "waiting (for an operator), retried or discarded"), limitFlag},
		run: list("v1/ops/inbox", func(p *api.DeadMessagePage) []api.DeadMessage { return p.Messages },
			[]string{"since", "consumer", "id", "type", "workflow", "business key", "status", "code", ">deliveries", "failure"},
			func(m *api.DeadMessage) []string {
				return []string{output.Moment(m.CreatedAt), m.Consumer, m.Message, output.OrNone(m.Type), output.OrNone(m.Workflow),
					output.OrNone(m.BusinessKey), string(m.Status), string(m.Code), fmt.Sprint(m.Deliveries), output.OrNone(m.Failure)}
			})},
	{use: "body CONSUMER ID", short: "Print the body of a message as it was sent",
		flags: []flagGroup{oneTenant("tenant of the message"), hashFlag}, run: printMessageBody},
	{use: "retry CONSUMER ID", short: "Consume a message again",
		long: `On a database this program commits the result itself, so it must have the workflow that
consumes the message.`,
		flags:   []flagGroup{oneTenant("tenant of the message"), hashFlag, authorFlags},
		commits: true,
		run: func(ctx context.Context, s *session) error {
			body, m, err := changeMessage(ctx, s, "retry")
			if err != nil {
				return err
			}
			return s.report(jsontext.Value(body), "%s %s: consumed", m.Consumer, m.Message)
		}},
	{use: "discard CONSUMER ID", short: "Discard a dead message permanently",
		long:  `Later deliveries of the message are discarded too.`,
		flags: []flagGroup{oneTenant("tenant of the message"), hashFlag, authorFlags},
		run: func(ctx context.Context, s *session) error {
			body, m, err := changeMessage(ctx, s, "discard")
			if err != nil {
				return err
			}
			return s.report(jsontext.Value(body), "%s %s: %s", m.Consumer, m.Message, inspect.MessageDiscarded)
		}},
	{use: "kept", short: "List messages that were stored as received",
		long: `The list has the messages of consumers with serve --inbox-keep, the oldest of each
consumer first. "raw" prints one.`,
		flags: []flagGroup{oneTenant("tenant of the messages"), text("consumer", "", "only those of this consumer"),
			text("id", "", "only those with this message id, with --consumer"), limitFlag},
		check: func(s *session) error {
			if s.given("id") && !s.given("consumer") {
				return usage.Errorf("--id needs its consumer: --consumer")
			}
			return nil
		},
		run: list("v1/ops/inbox/kept", func(p *api.KeptMessagePage) []api.KeptMessage { return p.Messages },
			[]string{"received", "consumer", "id", ">bytes", "kept until", "hash"},
			func(m *api.KeptMessage) []string {
				return []string{output.Moment(m.ReceivedAt), m.Consumer, m.Message, fmt.Sprint(m.Size), output.Moment(m.KeepUntil), m.Hash}
			})},
	{use: "raw CONSUMER ID", short: "Print a stored message with its headers",
		long:  `The headers include the signature; an empty line and the body follow.`,
		flags: []flagGroup{oneTenant("tenant of the message"), hashFlag}, run: printRawMessage},
}

// eachPage requests all pages of a list. next returns the cursor of the next page.
func eachPage[P any](ctx context.Context, s *session, path string, query url.Values, next func(*P) string) error {
	query.Set("limit", "1000")
	for {
		p, err := call[P](ctx, s, flags.Request{Path: s.path(path), Query: query})
		if err != nil {
			return err
		}
		cursor := next(&p)
		if cursor == "" {
			return nil
		}
		query.Set("cursor", cursor)
	}
}

// findMessage returns the dead message that the operands name: one that waits, else another.
func findMessage(ctx context.Context, s *session) (m api.DeadMessage, err error) {
	for _, status := range []inspect.MessageStatus{inspect.MessageWaiting, inspect.MessageDiscarded, inspect.MessageRetried} {
		var found []api.DeadMessage
		query := url.Values{"consumer": {s.args[0]}, "status": {string(status)}}
		err := eachPage(ctx, s, "v1/ops/inbox", query, func(p *api.DeadMessagePage) string {
			for _, m := range p.Messages {
				if m.Message == s.args[1] && (!s.given("hash") || m.Hash == s.text("hash")) {
					found = append(found, m)
				}
			}
			return p.Next
		})
		switch {
		case err != nil:
			return m, err
		case len(found) > 1:
			return m, usage.Errorf("%d messages have this id: select one with --hash", len(found))
		case len(found) == 1:
			return found[0], nil
		}
	}
	return m, workflow.Errorf(workflow.NotFound, "%q has no such message", s.args[0])
}

// changeMessage retries or discards a message, and returns the body of the answer.
func changeMessage(ctx context.Context, s *session, action string) ([]byte, api.DeadMessage, error) {
	m, err := findMessage(ctx, s)
	if err != nil {
		return nil, m, err
	}
	body, err := s.api.Call(ctx, flags.Request{Method: http.MethodPost, Path: s.path("v1/ops/inbox/" + action),
		Body: api.MessageOperation{Consumer: m.Consumer, Message: m.Message, Hash: m.Hash, Reason: s.text("reason")}})
	return body, m, err
}

func printMessageBody(ctx context.Context, s *session) error {
	m, err := findMessage(ctx, s)
	if err != nil {
		return err
	}
	body, err := s.api.Call(ctx, flags.Request{Path: s.path("v1/ops/inbox/body"),
		Query: url.Values{"consumer": {m.Consumer}, "message": {m.Message}, "hash": {m.Hash}}})
	if err != nil {
		return err
	}
	shown := struct {
		api.DeadMessage
		Body []byte `json:"body"` // in base64: it may be anything
	}{m, body}
	return s.print(&shown, func(w io.Writer) error {
		_, err := w.Write(body)
		return err
	})
}

func printRawMessage(ctx context.Context, s *session) error {
	query := url.Values{"consumer": {s.args[0]}, "message": {s.args[1]}}
	if query.Set("hash", s.text("hash")); !s.given("hash") {
		page, err := call[api.KeptMessagePage](ctx, s, flags.Request{Path: s.path("v1/ops/inbox/kept"),
			Query: url.Values{"consumer": {s.args[0]}, "message": {s.args[1]}, "limit": {"2"}}})
		switch {
		case err != nil:
			return err
		case len(page.Messages) > 1:
			return usage.Errorf("several messages have this id: select one with --hash")
		case len(page.Messages) == 0:
			return workflow.Errorf(workflow.NotFound, "no such message of %q is kept", s.args[0])
		}
		query.Set("hash", page.Messages[0].Hash)
	}
	raw, err := call[api.RawMessage](ctx, s, flags.Request{Path: s.path("v1/ops/inbox/kept/message"), Query: query})
	if err != nil {
		return err
	}
	body, err := base64.StdEncoding.DecodeString(raw.Body)
	if err != nil {
		return err
	}
	return s.print(&raw, func(w io.Writer) error {
		for _, name := range slices.Sorted(maps.Keys(raw.Headers)) {
			for _, value := range raw.Headers[name] {
				if _, err := fmt.Fprintf(w, "%s: %s\n", output.Visible(name), output.Visible(value)); err != nil {
					return err
				}
			}
		}
		_, err := fmt.Fprintf(w, "\n%s", body)
		return err
	})
}
