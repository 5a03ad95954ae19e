package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// longPoll is how long a node waits for a change.
const longPoll = 25 * time.Second

func commandPath(scope, key string) string {
	return "/v1/commands/" + segment(scope) + "/" + segment(key)
}

// DefaultScope returns the scope of a command without one. For a creation the instance is zero.
func DefaultScope(workflow, transition string, instance uuid.UUID) string {
	return transitions.DefaultScope(workflow, transition, instance)
}

// Command returns the status of a command.
func (c *Client) Command(ctx context.Context, scope, key string) (CommandStatus, error) {
	return get[CommandStatus](ctx, c, commandPath(scope, key), nil)
}

// Cancel requests the cancellation of a command in flight and returns its status. The command may still succeed.
func (c *Client) Cancel(ctx context.Context, scope, key string) (s CommandStatus, err error) {
	_, err = c.do(ctx, &call{method: http.MethodDelete, path: commandPath(scope, key), read: decodeInto(&s)})
	return s, err
}

// Watch yields the status of a command, now and after changes, until it is complete. It may skip intermediate changes. An error is yielded
// last.
func (c *Client) Watch(ctx context.Context, scope, key string) iter.Seq2[CommandStatus, error] {
	return func(yield func(CommandStatus, error) bool) {
		seen, unchanged := "", 0
		for {
			var s CommandStatus
			r := &call{method: http.MethodGet, path: commandPath(scope, key), read: decodeInto(&s)}
			if seen != "" {
				r.header, r.wait = http.Header{"If-None-Match": {seen}}, longPoll
			}
			a, err := c.do(ctx, r)
			if err != nil {
				yield(CommandStatus{}, err)
				return
			}
			if a.status == http.StatusNotModified {
				if a.header.Get("Preference-Applied") == "" { // the node has not waited
					unchanged++
					backoff.Sleep(ctx, c.backoff(unchanged)) // the next request reports the end of the context
				}
				continue
			}
			seen, unchanged = a.header.Get("ETag"), 0
			if !yield(s, nil) || ended(&s) {
				return
			}
		}
	}
}

func ended(s *CommandStatus) bool {
	return s.Status == transitions.Succeeded || s.Status == transitions.FailedFinal || s.Status == transitions.Expired
}

// Wait waits for the completion of a command and returns the result that every duplicate gets.
func (c *Client) Wait(ctx context.Context, scope, key string) (Receipt, error) {
	for s, err := range c.Watch(ctx, scope, key) {
		if err != nil {
			return Receipt{Key: key}, err
		}
		if ended(&s) {
			r := Receipt{Key: s.Key, Receipt: transitions.Receipt{
				Status: s.Code, Replayed: true, Instance: s.Instance, Version: s.Version, Position: s.Position, Body: s.Result,
			}}
			if s.Status != transitions.Succeeded {
				r.Body = s.Problem
				return r, r.Err()
			}
			return r, nil
		}
	}
	return Receipt{Key: key}, workflow.Errorf(workflow.Internal, "the watch ended before the command")
}
