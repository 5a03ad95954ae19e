package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// contract validates exchanges against an OpenAPI document.
type contract struct{ document *openapi3.T }

func newContract(text []byte) (*contract, error) {
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err == nil {
		err = document.Validate(context.Background())
	}
	return &contract{document}, err
}

// exchange is a request and its answer.
type exchange struct {
	pattern string // of the route, in the syntax of http.ServeMux
	request *http.Request
	sent    []byte // the body of the request
	status  int
	header  http.Header
	body    []byte
}

func (c *contract) checkAnswer(x *exchange) error {
	in, err := c.find(x)
	if err != nil {
		return err
	}
	if r := in.Route.Operation.Responses.Status(x.status); r != nil && len(r.Value.Content) > 0 && r.Value.Content[mediaOf(x.header)] == nil {
		return fmt.Errorf("status %d has no media type %s", x.status, mediaOf(x.header))
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: x.status, Header: x.header, Body: io.NopCloser(bytes.NewReader(x.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: !strings.HasSuffix(mediaOf(x.header), "json")},
	})
}

// checkRequest treats a body of JSON lines as an array.
func (c *contract) checkRequest(x *exchange) error {
	in, err := c.find(x)
	if err != nil {
		return err
	}
	if mediaOf(in.Request.Header) == "application/x-ndjson" {
		in.Request.Header.Set("Content-Type", "application/json")
		lines := bytes.Join(bytes.FieldsFunc(x.sent, func(r rune) bool { return r == '\n' }), []byte(","))
		in.Request.Body = io.NopCloser(bytes.NewReader(fmt.Appendf(nil, "[%s]", lines)))
	}
	in.Options = &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true,
		ExcludeRequestBody: !strings.HasSuffix(mediaOf(in.Request.Header), "json")}
	return openapi3filter.ValidateRequest(context.Background(), in)
}

// find looks up the operation of x, under the address of its transition if the document has one.
func (c *contract) find(x *exchange) (*openapi3filter.RequestValidationInput, error) {
	method, pattern, _ := strings.Cut(x.pattern, " ")
	values := pathValues(pattern, x.request.URL.EscapedPath())
	general := strings.ReplaceAll(pattern, "...}", "}")
	narrow := strings.NewReplacer("{workflow}", values["workflow"], "{transition}", values["transition"]).Replace(general)
	for _, path := range []string{narrow, general} {
		item := c.document.Paths.Value(path)
		if item == nil || item.GetOperation(method) == nil {
			continue
		}
		r := x.request.Clone(context.Background())
		r.Method, r.Body = method, io.NopCloser(bytes.NewReader(x.sent))
		return &openapi3filter.RequestValidationInput{Request: r, PathParams: values, QueryParams: r.URL.Query(), Route: &routers.Route{
			Spec: c.document, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)}}, nil
	}
	return nil, fmt.Errorf("the document has no %s", x.pattern)
}

// pathValues returns the values of the wildcards of a pattern of http.ServeMux in an escaped path.
func pathValues(pattern, path string) map[string]string {
	values := map[string]string{}
	given := strings.Split(path, "/")
	for i, part := range strings.Split(pattern, "/") {
		name, isWildcard := strings.CutPrefix(part, "{")
		if !isWildcard || i >= len(given) {
			continue
		}
		text := given[i]
		name, isRest := strings.CutSuffix(strings.TrimSuffix(name, "}"), "...")
		if isRest {
			text = strings.Join(given[i:], "/")
		}
		values[name], _ = url.PathUnescape(text)
	}
	return values
}

func mediaOf(h http.Header) string {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return media
}
