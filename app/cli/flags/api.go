package flags

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// API sends requests to the routes for operators.
type API struct {
	URL    string
	HTTP   *http.Client
	Header http.Header // of each request
	node   bool
}

// Request is a request to a route.
type Request struct {
	Method string   // defaults to GET
	Path   []string // the segments, not escaped
	Query  url.Values
	Key    string // the header Idempotency-Key
	Body   any    // is sent as JSON; nil sends no body
}

// NodeAPI returns the API of a node, with the credential of EnvToken if it is set. Otherwise the caller names its tenant.
func NodeAPI(node, tenant string) API {
	a := API{URL: strings.TrimRight(node, "/"), Header: http.Header{}, node: true, HTTP: &http.Client{Timeout: answerTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}} // it could lead past TLS
	if token := os.Getenv(EnvToken); token != "" {
		a.Header.Set("Authorization", "Bearer "+token)
	} else if tenant != "" {
		a.Header.Set("Pawl-Tenant", tenant)
	}
	return a
}

// Call sends a request once and returns the body of the response. A refusal of the API in this process is a [*workflow.Error].
func (a API) Call(ctx context.Context, r Request) (body []byte, err error) {
	request, err := a.request(ctx, r)
	if err != nil {
		return nil, err
	}
	answer, err := a.HTTP.Do(request)
	if err != nil {
		if a.node {
			err = fmt.Errorf("ask the node: %w", err)
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if body, err = io.ReadAll(answer.Body); err != nil {
		return nil, err
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		return body, nil
	}
	problem, unknown := Decode[transitions.Problem](body)
	if a.node || unknown != nil || problem.Code == "" {
		return nil, fmt.Errorf("the node answered %s: %s", answer.Status, problem.Detail)
	}
	return nil, problem.Err()
}

func (a API) request(ctx context.Context, r Request) (*http.Request, error) {
	address := a.URL
	for _, segment := range r.Path {
		address += "/" + url.PathEscape(segment)
	}
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = json.Marshal(r.Body); err != nil {
			return nil, &workflow.Error{Code: workflow.InvalidRequest, Message: "the request cannot be encoded", Cause: err}
		}
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = a.Header.Clone()
	if r.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.Key != "" {
		request.Header.Set("Idempotency-Key", r.Key)
	}
	return request, nil
}

// Decode parses the body of a response. It ignores unknown members.
func Decode[T any](body []byte) (v T, err error) {
	err = json.Unmarshal(body, &v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return v, err
}
