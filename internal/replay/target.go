package replay

import (
	"context"
	"errors"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Target takes commands and answers each, in order. Commands of one instance
// must be done in their order. *engine.Engine is one, and [HTTP] makes one of a
// server.
type Target interface {
	SubmitMany(ctx context.Context, cs []transitions.Command) []transitions.Reply
}

// retryable reports whether the same command may be submitted again: nothing
// is stored under its key, or the key will find it. A defect is not retried: it
// would come back.
func retryable(err error) bool {
	code := workflow.CodeOf(err)
	return err != nil && code != workflow.Internal && code.Info().Retry
}

// misplaced reports an answer that is not about the event but about how it was
// submitted: every other would get it too.
func misplaced(err error) bool {
	switch workflow.CodeOf(err) {
	case workflow.Unauthorized, workflow.Forbidden, workflow.NotFound, workflow.MethodNotAllowed, workflow.NotAcceptable,
		workflow.UnsupportedMedia, workflow.TooLarge, workflow.InvalidRequest, workflow.WorkflowNotFound, workflow.TransitionNotFound:
		return true
	}
	return false
}

// reasonOf says in the fold's words what became of an event: "" for accepted,
// the guard's text, or else the code.
func reasonOf(r transitions.Reply) string {
	err := r.Err
	if err == nil {
		err = r.Receipt.Err()
	}
	switch code := workflow.CodeOf(err); code {
	case "":
		return ""
	case workflow.GuardRefused:
		if e, ok := errors.AsType[*workflow.Error](err); ok {
			return e.Message
		}
		return string(code)
	default:
		return string(code)
	}
}
