package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
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

// declared compares every answer of a handler, and each request that it serves, with the OpenAPI document of these workflows, server-sent
// events with the AsyncAPI document, and headers with the table of routes.
func declared(t testing.TB, h http.Handler, workflows []*workflow.Workflow) http.Handler {
	contract := contractOf(t, workflows)
	routes := map[string]api.Route{}
	for _, r := range api.Routes() {
		routes[r.Method+" "+r.Path] = r
	}
	return http.HandlerFunc(func(w http.ResponseWriter, given *http.Request) {
		seen, sent := &seenWriter{ResponseWriter: w, status: http.StatusOK}, &sentBody{ReadCloser: given.Body}
		r := given.WithContext(given.Context()) // net/http looks at its own
		if given.Body != http.NoBody {
			r.Body = sent
		}
		h.ServeHTTP(seen, r)
		route, ours := routes[r.Pattern] // set by the mux
		if !ours {
			return
		}
		if seen.hijacked {
			seen.status = http.StatusSwitchingProtocols
		} else { // what follows takes none of the answer's time, of which the server may write the end when this returns
			defer func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(await.Patience)) }()
		}
		headersDeclared(t, &route, w.Header())
		seen.unpack(t)
		asDocumented(t, contract, &route, r, sent, seen)
	})
}

func headersDeclared(t testing.TB, route *api.Route, h http.Header) {
	for name := range h {
		is := func(d api.Header) bool { return http.CanonicalHeaderKey(d.Name) == name }
		assert.Falsef(t, !slices.ContainsFunc(api.AnswerHeaders(), is) && !slices.ContainsFunc(route.Headers, is),
			"%s %s answers with the header %s, which is not declared", route.Method, route.Path, name)
	}
}

// atNoAddress is what the mux itself says, also of an address that is not a tidy one.
const atNoAddress = "there is nothing at this address"

// seenWriter keeps the status and the beginning of an answer.
type seenWriter struct {
	http.ResponseWriter
	status   int
	start    bytes.Buffer
	cut      bool // start is not all
	hijacked bool
}

func (w *seenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *seenWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenWriter) Write(b []byte) (int, error) {
	if w.start.Len() < maxSeen {
		w.start.Write(b)
	} else {
		w.cut = true
	}
	return w.ResponseWriter.Write(b)
}

// unpack replaces the start of a body that is compressed.
func (w *seenWriter) unpack(t testing.TB) {
	if w.Header().Get("Content-Encoding") != "gzip" || w.start.Len() == 0 || w.cut {
		return
	}
	text, err := gzip.NewReader(&w.start)
	var unpacked []byte
	if err == nil {
		unpacked, err = io.ReadAll(text)
	}
	assert.NoError(t, err)
	w.start = *bytes.NewBuffer(unpacked)
}

func (w *seenWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// maxSeen is how much of a body is kept, in bytes.
const maxSeen = 1 << 20

// sentBody keeps what is read of a request's body.
type sentBody struct {
	io.ReadCloser
	start bytes.Buffer
	cut   bool // start is not all
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.start.Len() < maxSeen {
		b.start.Write(p[:n])
	} else if n > 0 {
		b.cut = true
	}
	return n, err
}
