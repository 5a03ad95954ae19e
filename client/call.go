package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// call is a request that may be sent more than once.
type call struct {
	method  string
	path    string // escaped
	query   url.Values
	header  http.Header
	body    []byte // JSON, or nil
	wait    time.Duration
	command bool                // an attempt without a response may have executed it
	read    func(*answer) error // parses a successful response
}

// answer is a complete response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// reading ignores unknown members, and accepts stored data of SQL callers as it is.
var reading = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// do sends a call until it has a response or no more attempts are left.
func (c *Client) do(ctx context.Context, r *call) (answer, error) {
	t := trial{client: c}
	for {
		at := c.at.Load()
		a, f := c.attempt(ctx, at, r)
		if f == nil {
			return a, nil
		}
		if !t.again(ctx, at, f) {
			if !r.command {
				return a, f.error(ctx)
			}
			e := t.error(ctx, f)
			if e.Code != f.err.Code {
				a = answer{} // of another attempt
			}
			return a, e
		}
	}
}

// attempt sends a call once.
func (c *Client) attempt(ctx context.Context, at int64, r *call) (a answer, f *failed) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout+r.wait)
	defer cancel()
	header, f := c.identity(ctx)
	if f != nil {
		return a, f
	}
	address := c.urls[at] + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return a, &failed{err: &workflow.Error{Code: workflow.InvalidRequest, Message: "cannot create the request", Cause: err}}
	}
	request.Header = header
	for name, values := range r.header {
		header[name] = values
	}
	if r.body != nil {
		header.Set("Content-Type", "application/json")
	}
	if r.wait > 0 {
		header.Set("Prefer", "wait="+strconv.Itoa(int(r.wait/time.Second)))
	}
	if a, err = c.exchange(request); err != nil {
		return answer{}, noResponse(err)
	}
	return a, r.check(&a)
}

// identity returns the headers that identify the caller.
func (c *Client) identity(ctx context.Context) (http.Header, *failed) {
	h := http.Header{}
	token, err := c.token(ctx)
	if err != nil {
		return nil, &failed{again: true, err: &workflow.Error{Code: workflow.TimedOut, Message: "cannot obtain a credential", Cause: err}}
	}
	caller := map[string]string{"Pawl-Tenant": c.cfg.Tenant, "Pawl-Actor": c.cfg.Actor, "Pawl-Roles": strings.Join(c.cfg.Roles, ",")}
	for name, value := range caller {
		if value != "" {
			h.Set(name, value)
		}
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h, nil
}

const headerRequestID = "X-Request-Id"

var errMisdelivered = errors.New("received the response to another request")

// exchange sends a request and reads its response. A misbehaving proxy can return the response to another request on the same connection,
// so each request has an id that its response repeats. Ids of other origins were set by a proxy and are ignored.
func (c *Client) exchange(r *http.Request) (a answer, err error) {
	name := c.name + "-" + strconv.FormatInt(c.requests.Add(1), 10)
	r.Header.Set(headerRequestID, name)
	response, err := c.http.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	if got := response.Header.Get(headerRequestID); got != name && strings.HasPrefix(got, c.name) {
		c.http.CloseIdleConnections()
		return a, errMisdelivered
	}
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, body}, err
}

// check returns what is wrong with a response, or nil.
func (r *call) check(a *answer) *failed {
	switch {
	case a.status >= 400:
		return refused(a)
	case a.status >= 300 && a.status != http.StatusNotModified:
		return foreign(a)
	case r.read == nil || a.status == http.StatusNotModified:
		return nil
	}
	if err := r.read(a); err != nil {
		return noResponse(fmt.Errorf("cannot parse the response: %w", err))
	}
	return nil
}

// decodeInto returns a function that parses a JSON response into v.
func decodeInto(v any) func(*answer) error {
	return func(a *answer) error { return json.Unmarshal(a.body, v, reading) }
}

// get requests JSON.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (v T, err error) {
	_, err = c.do(ctx, &call{method: http.MethodGet, path: path, query: query, read: func(a *answer) error {
		v = *new(T) // discard a previous attempt
		return decodeInto(&v)(a)
	}})
	return v, err
}

// post sends an idempotent request.
func post[T any](ctx context.Context, c *Client, path string, body any) (v T, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return v, &workflow.Error{Code: workflow.InvalidRequest, Message: "cannot encode the request", Cause: err}
	}
	_, err = c.do(ctx, &call{method: http.MethodPost, path: path, body: text, read: decodeInto(&v)})
	return v, err
}

// segment escapes a text as one segment of a path, including "." and "..".
func segment(s string) string {
	switch s {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	return url.PathEscape(s)
}
