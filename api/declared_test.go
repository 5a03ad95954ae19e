package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

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
