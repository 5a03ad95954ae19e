// Package contracttest holds requests and answers against an OpenAPI document, with two validators of different
// makers, and makes up requests from one. Only tests import it.
package contracttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/cache"
	"github.com/pb33f/libopenapi-validator/config"
	validation "github.com/pb33f/libopenapi-validator/errors"
)

// Checker holds what was asked and answered against a document.
type Checker struct {
	kin *openapi3.T
	lib validator.Validator

	one  sync.Mutex // libopenapi compiles a schema where it first needs it, and is not made for others who do so too
	good sync.Map   // the shapes of what was as the document says
}

// New reads a document with both, and has both check the document itself.
func New(document []byte) (*Checker, error) {
	kin, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, fmt.Errorf("kin-openapi: %w", err)
	}
	if err := kin.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("kin-openapi: %w", err)
	}
	lib, err := libopenapi.NewDocument(document)
	if err != nil {
		return nil, fmt.Errorf("libopenapi: %w", err)
	}
	schemas := &lateCache{SchemaCache: cache.NewDefaultCache()}
	check, errs := validator.NewValidator(lib, config.WithSchemaCache(schemas))
	if len(errs) > 0 {
		return nil, fmt.Errorf("libopenapi: %w", errors.Join(errs...))
	}
	schemas.open = true
	if ok, problems := check.ValidateDocument(); !ok {
		return nil, byLib(problems)
	}
	return &Checker{kin: kin, lib: check}, nil
}

// Exchange is a request and its answer.
type Exchange struct {
	Pattern string // the route's, as http.ServeMux has it
	Request *http.Request
	Sent    []byte // the body of the request
	Status  int
	Header  http.Header
	Body    []byte
}

// Answer returns what of the answer is not as the document says.
func (c *Checker) Answer(x *Exchange) error {
	at, err := c.find(x)
	if err != nil {
		return err
	}
	return c.once(at.shapeOfAnswer(x), func() error { return errors.Join(c.answerByKin(at, x), c.answerByLib(at, x)) })
}

// Request returns what of the request is not as the document says. JSON in lines is read as an array.
func (c *Checker) Request(x *Exchange) error {
	x = x.inArray()
	at, err := c.find(x)
	if err != nil {
		return err
	}
	return c.once(at.shapeOfRequest(x), func() error { return errors.Join(c.requestByKin(at, x), c.requestByLib(at, x)) })
}

// once asks of a shape until it was found good. Validators compile schemas for each value that they look at.
func (c *Checker) once(shape []byte, check func() error) error {
	key := sha256.Sum256(shape)
	if _, known := c.good.Load(key); known {
		return nil
	}
	c.one.Lock()
	defer c.one.Unlock()
	err := check()
	if err == nil {
		c.good.Store(key, true)
	}
	return err
}

// lateCache has nothing compiled before it is needed: until it is open it says that everything is there.
type lateCache struct {
	cache.SchemaCache
	open bool
}

func (c *lateCache) Load(key uint64) (*cache.SchemaCacheEntry, bool) {
	if !c.open {
		return nil, true
	}
	return c.SchemaCache.Load(key)
}

func (c *Checker) answerByKin(at *place, x *Exchange) error {
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: at.request(x), Route: at.route},
		Status:                 x.Status, Header: x.Header, Body: io.NopCloser(bytes.NewReader(x.Body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: !isJSON(x.Header)},
	})
	if err != nil {
		return fmt.Errorf("kin-openapi: %w", err)
	}
	return nil
}

func (c *Checker) requestByKin(at *place, x *Exchange) error {
	r := at.request(x)
	err := openapi3filter.ValidateRequest(context.Background(), &openapi3filter.RequestValidationInput{
		Request: r, Route: at.route, PathParams: at.parts, QueryParams: r.URL.Query(),
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true,
			ExcludeRequestBody: !isJSON(x.Request.Header)},
	})
	if err != nil {
		return fmt.Errorf("kin-openapi: %w", err)
	}
	return nil
}

func (c *Checker) answerByLib(at *place, x *Exchange) error {
	r := at.request(x)
	ok, problems := c.lib.ValidateHttpResponse(r,
		&http.Response{StatusCode: x.Status, Header: x.Header, Body: io.NopCloser(bytes.NewReader(x.Body)), Request: r})
	if ok {
		return nil
	}
	return byLib(problems)
}

func (c *Checker) requestByLib(at *place, x *Exchange) error {
	ok, problems := c.lib.ValidateHttpRequestSync(at.request(x))
	if ok {
		return nil
	}
	return byLib(problems)
}

func byLib(problems []*validation.ValidationError) error {
	var all []error
	for _, p := range problems {
		all = append(all, fmt.Errorf("libopenapi: %w", p))
	}
	return errors.Join(all...)
}

// place is where an exchange stands in the document.
type place struct {
	route *routers.Route
	path  string            // of a request there
	parts map[string]string // of the path, by name
}

// find looks an exchange up: under the transition's own address where there is one.
func (c *Checker) find(x *Exchange) (*place, error) {
	method, pattern, _ := strings.Cut(x.Pattern, " ")
	parts := Parts(pattern, x.Request.URL.EscapedPath())
	general := strings.ReplaceAll(pattern, "...}", "}")
	path := strings.NewReplacer("{workflow}", parts["workflow"], "{transition}", parts["transition"]).Replace(general)
	item := c.kin.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		path, item = general, c.kin.Paths.Value(general)
	}
	if item == nil || item.GetOperation(method) == nil {
		return nil, fmt.Errorf("kin-openapi: the document has no %s %s", method, path)
	}
	route := &routers.Route{Spec: c.kin, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)}
	at := &place{parts: map[string]string{}, route: route}
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			name = strings.TrimSuffix(name, "}")
			part = sample(parts[name])
			at.parts[name] = part
		}
		b.WriteString("/" + part)
	}
	at.path = b.String()
	return at, nil
}

// request is the request of an exchange at its place.
func (at *place) request(x *Exchange) *http.Request {
	r := x.Request.Clone(context.Background())
	r.Method = at.route.Method
	u := *r.URL
	u.Scheme, u.Host, u.Path, u.RawPath = "http", "localhost", at.path, ""
	r.URL = &u
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(x.Sent)), int64(len(x.Sent))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.Sent)), nil }
	return r
}

func isJSON(h http.Header) bool { return strings.HasSuffix(mediaOf(h), "json") }

func mediaOf(h http.Header) string {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return media
}

// inArray is an exchange whose request has its lines of JSON in an array.
func (x *Exchange) inArray() *Exchange {
	if mediaOf(x.Request.Header) != "application/x-ndjson" {
		return x
	}
	other := *x
	other.Request = x.Request.Clone(context.Background())
	other.Request.Header.Set("Content-Type", "application/json")
	var lines [][]byte
	for line := range bytes.Lines(x.Sent) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	other.Sent = fmt.Appendf(nil, "[%s]", bytes.Join(lines, []byte(",")))
	return &other
}
