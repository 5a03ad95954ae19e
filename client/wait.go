package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/pause"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// longPoll is how long a node is asked to wait for something new.
const longPoll = 25 * time.Second

func commandPath(scope, key string) string {
	return "/v1/commands/" + segment(scope) + "/" + segment(key)
}

// DefaultScope is the scope of a command that names none. Of a creation the instance is zero.
func DefaultScope(workflow, transition string, instance uuid.UUID) string {
	return transitions.DefaultScope(workflow, transition, instance)
}

// Command is how a command stands.
func (c *Client) Command(ctx context.Context, scope, key string) (CommandStatus, error) {
	return get[CommandStatus](ctx, c, commandPath(scope, key), nil)
}

// Cancel asks a command in flight to stop, and returns how it stands. It may succeed all the same.
func (c *Client) Cancel(ctx context.Context, scope, key string) (s CommandStatus, err error) {
	_, err = c.do(ctx, &call{method: http.MethodDelete, path: commandPath(scope, key), read: into(&s)})
	return s, err
}

// Watch yields how a command stands, now and whenever that changes, until it has ended; of several changes the newest. An error is the last
// that it yields.
func (c *Client) Watch(ctx context.Context, scope, key string) iter.Seq2[CommandStatus, error] {
	return func(yield func(CommandStatus, error) bool) {
		seen, unchanged := "", 0
		for {
			var s CommandStatus
			r := &call{method: http.MethodGet, path: commandPath(scope, key), read: into(&s)}
			if seen != "" {
				r.header, r.wait = http.Header{"If-None-Match": {seen}}, longPoll
			}
			a, err := c.do(ctx, r)
			if err != nil {
				yield(CommandStatus{}, err)
				return
			}
			if a.status == http.StatusNotModified {
				if a.header.Get("Preference-Applied") == "" { // it has not waited
					unchanged++
					pause.For(ctx, c.backoff(unchanged)) // who is asked next says that the context has ended
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

// Wait waits for the end of a command, and returns what every duplicate of it gets.
func (c *Client) Wait(ctx context.Context, scope, key string) (Receipt, error) {
	for s, err := range c.Watch(ctx, scope, key) {
		if err != nil {
			return Receipt{Key: key}, err
		}
		if ended(&s) {
			return endOf(&s)
		}
	}
	return Receipt{Key: key}, workflow.Errorf(workflow.Internal, "a watch has no end")
}

// endOf is the answer of a command that has ended.
func endOf(s *CommandStatus) (Receipt, error) {
	r := Receipt{Key: s.Key, Receipt: transitions.Receipt{
		Status: s.Code, Replayed: true, Instance: s.Instance, Version: s.Version, Position: s.Position, Body: s.Result,
	}}
	if s.Status != transitions.Succeeded {
		r.Body = s.Problem
		return r, r.Err()
	}
	return r, nil
}
