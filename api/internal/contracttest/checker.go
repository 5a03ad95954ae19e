// Package contracttest holds requests and answers against an OpenAPI document, with two validators of different
// makers. Only tests import it.
package contracttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

// Checker holds what was served against a document.
type Checker struct {
	kin *openapi3.T
	lib validator.Validator
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
	check, errs := validator.NewValidator(lib)
	if len(errs) > 0 {
		return nil, fmt.Errorf("libopenapi: %w", errors.Join(errs...))
	}
	if ok, problems := check.ValidateDocument(); !ok {
		return nil, fmt.Errorf("libopenapi: %v", problems)
	}
	return &Checker{kin: kin, lib: check}, nil
}

// Exchange is a request and its answer.
type Exchange struct {
	Pattern string // the route's, as http.ServeMux has it
	Request *http.Request
	Status  int
	Header  http.Header
	Body    []byte
}

// Check returns what of the answer is not as the document says.
func (c *Checker) Check(x *Exchange) error {
	r, path := c.addressed(x)
	return errors.Join(c.byKin(r, path, x), c.byLib(r, x))
}

// addressed is the request at the address by which the document knows it, and that address: the one of the transition where there is one.
func (c *Checker) addressed(x *Exchange) (*http.Request, string) {
	method, pattern, _ := strings.Cut(x.Pattern, " ")
	pattern = strings.ReplaceAll(pattern, "...}", "}")
	narrow := strings.NewReplacer("{workflow}", x.Request.PathValue("workflow"), "{transition}", x.Request.PathValue("transition")).Replace(pattern)
	if item := c.kin.Paths.Value(narrow); item == nil || item.GetOperation(method) == nil {
		narrow = pattern
	}
	var path strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(narrow, "/"), "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			part = sample(x.Request.PathValue(strings.TrimSuffix(name, "}")))
		}
		path.WriteString("/" + part)
	}
	r := x.Request.Clone(context.Background())
	r.Method, r.URL = method, &url.URL{Scheme: "http", Host: "localhost", Path: path.String(), RawQuery: x.Request.URL.RawQuery}
	return r, narrow
}

// sample is a value of a part of a path, or something in its place where it has what the validators read as more than one.
func sample(value string) string {
	if value == "" || value != url.PathEscape(value) {
		return "sample"
	}
	return value
}

func (c *Checker) byKin(r *http.Request, path string, x *Exchange) error {
	item := c.kin.Paths.Value(path)
	if item == nil || item.GetOperation(r.Method) == nil {
		return fmt.Errorf("kin-openapi: the document has no %s %s", r.Method, path)
	}
	route := &routers.Route{Spec: c.kin, Path: path, PathItem: item, Method: r.Method, Operation: item.GetOperation(r.Method)}
	err := openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route},
		Status:                 x.Status, Header: x.Header, Body: io.NopCloser(bytes.NewReader(x.Body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: !isJSON(x.Header)},
	})
	if err != nil {
		return fmt.Errorf("kin-openapi: %w", err)
	}
	return nil
}

func (c *Checker) byLib(r *http.Request, x *Exchange) error {
	ok, problems := c.lib.ValidateHttpResponse(r, &http.Response{StatusCode: x.Status, Header: x.Header, Body: io.NopCloser(bytes.NewReader(x.Body)), Request: r})
	if ok {
		return nil
	}
	var all []error
	for _, p := range problems {
		all = append(all, fmt.Errorf("libopenapi: %w", p))
	}
	return errors.Join(all...)
}

func isJSON(h http.Header) bool {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return strings.HasSuffix(media, "json")
}
