package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/api/internal/parse"
	"github.com/pawlhq/pawl/workflow"
)

// bodyTime is how long a body may take to arrive. Some are read before it is known
// who sends them.
const bodyTime = time.Minute

// body reads what the request carries, as far as there is memory for it. Errors: TooLarge, RateLimited, Overloaded.
func (a *API) body(w http.ResponseWriter, r *request) ([]byte, error) {
	limit := r.route.Body.Limit(a.cfg.Limits)
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	control := http.NewResponseController(w)
	bounded := control.SetReadDeadline(time.Now().Add(bodyTime)) == nil // else it is not a connection's
	// What is announced is not yet sent: memory follows what arrives.
	body := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), 64<<10)+bytes.MinRead))
	arriving := io.Reader(http.MaxBytesReader(w, r.Body, limit))
	var err error
	if r.ContentLength >= 0 {
		err = r.holder.TryTake(r.ContentLength * budget.PerByte)
	} else {
		arriving = &chargedReader{holder: r.holder, body: arriving}
	}
	if err == nil {
		_, err = body.ReadFrom(arriving)
	}
	if refused, ok := errors.AsType[*workflow.Error](err); ok {
		return nil, refused
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge(limit)
	}
	if err != nil {
		return nil, workflow.Errorf(workflow.InvalidRequest, "the body could not be read to its end")
	}
	if bounded { // the server keeps reading to detect that the caller disconnects
		if err := control.SetReadDeadline(time.Time{}); err != nil {
			return nil, workflow.Errorf(workflow.InvalidRequest, "the connection was lost")
		}
	}
	return body.Bytes(), r.stillHolds(w.Header()) // who sends slowly is not believed for longer than others
}

// chargedReader reads a body that does not announce its length, and holds memory for it before it is read.
type chargedReader struct {
	holder *budget.Holder
	body   io.Reader
	left   int64 // bytes that memory is held for, and that were not read yet
}

// bodyStep is how many bytes of such a body get memory at once.
const bodyStep = 64 << 10

func (c *chargedReader) Read(b []byte) (int, error) {
	if c.left == 0 {
		if err := c.holder.TryTake(bodyStep * budget.PerByte); err != nil {
			return 0, err
		}
		c.left = bodyStep
	}
	n, err := c.body.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}

func tooLarge(limit int64) error {
	return workflow.Errorf(workflow.TooLarge, "the body is larger than %d bytes", limit)
}

// readJSON reads a body that is a JSON object. Without one it is empty, as for a
// command.
func readJSON[T any](a *API, w http.ResponseWriter, r *request) (v T, err error) {
	if r.route.Body.Type != reflect.TypeFor[T]() {
		panic(fmt.Sprintf("api: the route %s %s declares no body of %T", r.route.Method, r.route.Path, v))
	}
	body, err := a.body(w, r)
	if err != nil || len(body) == 0 {
		return v, err
	}
	return object[T]("the body", body)
}

// object reads a JSON object.
func object[T any](what string, text []byte) (v T, err error) {
	if jsontext.Value(text).Kind() != '{' {
		return v, workflow.Errorf(workflow.InvalidRequest, "%s is not a JSON object", what)
	}
	if err := json.Unmarshal(text, &v, json.RejectUnknownMembers(true)); err != nil {
		return v, &workflow.Error{Code: workflow.InvalidRequest, Message: what + " is not well-formed",
			Fields: []workflow.FieldError{parse.JSON(err)}}
	}
	return v, nil
}

// show is the handler of what is found and answered as JSON.
func show[T any](find func(*API, *request) (T, error)) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		found, err := find(a, r)
		if err != nil {
			return err
		}
		return sendJSON(w, http.StatusOK, found)
	}
}

// answered is the handler of a change that a body asks for; what it returns is
// answered as JSON.
func answered[B, T any](do func(*API, *request, B) (T, error)) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		return show(func(a *API, r *request) (out T, err error) {
			in, err := readJSON[B](a, w, r)
			if err != nil {
				return out, err
			}
			return do(a, r, in)
		})(a, w, r)
	}
}

// done is the handler of a change that a body asks for, and that is answered without a body.
func done[B any](do func(*API, *request, B) error) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		in, err := readJSON[B](a, w, r)
		if err != nil {
			return err
		}
		return removed(func(a *API, r *request) error { return do(a, r, in) })(a, w, r)
	}
}

// removed is the handler of a DELETE.
func removed(do func(*API, *request) error) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		err := do(a, r)
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return err
	}
}
