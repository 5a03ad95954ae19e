package api

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// retryAfter is what a caller is asked to wait when the same request may
// succeed later, in seconds.
const retryAfter = "1"

// fail answers with the problem document of an error.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	sendProblem(w, a.judged(r.Context(), err))
}

// sendProblem writes the problem document of an error.
func sendProblem(w http.ResponseWriter, err error) {
	problem := transitions.ProblemOf(err)
	protect(w.Header()) // also of one that the program's routes lead to
	w.Header().Del(headerETag)
	w.Header().Del(headerApplied)
	if problem.Status == http.StatusTooManyRequests || problem.Status == http.StatusServiceUnavailable || problem.Code == workflow.InProgress {
		if w.Header().Get(headerRetryAfter) == "" { // nothing better is known
			w.Header().Set(headerRetryAfter, retryAfter)
		}
	}
	write(w, problem.Status, mediaProblem, problem.JSON())
}

// judged turns the end of a request's time into the error that says so, and
// logs what is not the caller's fault.
func (a *API) judged(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*workflow.Error](err); !ok && ctx.Err() != nil {
		return &workflow.Error{Code: workflow.TimedOut, Message: "the request ended before its answer", Cause: err}
	}
	a.noteRefusal(ctx, err)
	switch code := workflow.CodeOf(err); {
	case code == workflow.Internal:
		a.log.ErrorContext(ctx, "api: a request failed", "error", err)
	case code.Info().Status >= 500 && errors.Unwrap(err) != nil:
		a.log.DebugContext(ctx, "api: a request could not be served", "error", err) // one line each would flood the log
	}
	return err
}

// recovered answers for a handler that panicked.
func (a *API) recovered(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	a.log.ErrorContext(r.Context(), "api: a handler panicked", "panic", v, "method", r.Method, "pattern", r.Pattern,
		"stack", string(debug.Stack()))
	sendProblem(w, workflow.Errorf(workflow.Internal, "the request failed; the log has the details"))
}

// send writes a whole answer. It reserves memory for a large one until it is written; without memory it answers with that problem instead.
func send(w http.ResponseWriter, status int, media string, body []byte) {
	if err := holdAnswer(w, body); err != nil {
		sendProblem(w, err)
		return
	}
	write(w, status, media, body)
}

// write writes a whole answer. An error here means that the caller is gone.
func write(w http.ResponseWriter, status int, media string, body []byte) {
	writeHead(w, status, media, len(body))
	_, _ = w.Write(body)
}

// writeHead writes the head of an answer whose body has a length.
func writeHead(w http.ResponseWriter, status int, media string, length int) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(length))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-cache")
	}
	w.WriteHeader(status)
}

// sendJSON renders and writes an answer.
func sendJSON(w http.ResponseWriter, status int, v any) error {
	body, err := render(v)
	if err != nil {
		return err
	}
	send(w, status, mediaJSON, body)
	return nil
}

// render encodes one of this package's wire types. JSON that SQL callers have
// stored is passed on as it is, though PostgreSQL takes more than RFC 8785 does: a
// name twice in an object, half of a surrogate pair. One such event would
// otherwise keep its tenant's readers from all that follow.
func render(v any) ([]byte, error) {
	body, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, &workflow.Error{Code: workflow.Internal, Message: "the answer cannot be encoded", Cause: err}
	}
	return body, nil
}
