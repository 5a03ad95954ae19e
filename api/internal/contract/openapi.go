package contract

import "github.com/google/jsonschema-go/jsonschema"

// Schema is a JSON Schema (draft 2020-12), which OpenAPI 3.1 and AsyncAPI 3 both have.
type Schema = *jsonschema.Schema

// Version is that of the OpenAPI Specification.
const Version = "3.1.1"

// Document is an OpenAPI document, with the members of the specification that are used here.
type Document struct {
	OpenAPI    string              `json:"openapi"`
	Info       Info                `json:"info"`
	Servers    []Server            `json:"servers"`
	Tags       []Tag               `json:"tags"`
	Paths      map[string]PathItem `json:"paths"`
	Components Components          `json:"components"`
}

// Info says what is described.
type Info struct {
	Title       string   `json:"title"`
	Version     string   `json:"version"`
	Description string   `json:"description"`
	License     *License `json:"license,omitempty"`
}

// License is that of what is described.
type License struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier"` // SPDX
}

// Server is where it is, relative to the document.
type Server struct {
	URL string `json:"url"`
}

// Tag is a section.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// PathItem is the operations of an address, by method in small letters.
type PathItem map[string]*Operation

// Operation is a method of an address.
type Operation struct {
	ID          string                `json:"operationId"`
	Tags        []string              `json:"tags"`
	Summary     string                `json:"summary,omitempty"`
	Description string                `json:"description,omitempty"`
	Parameters  []Ref                 `json:"parameters,omitempty"`
	Body        *Body                 `json:"requestBody,omitempty"`
	Responses   map[string]Ref        `json:"responses"`         // by status
	Security    []map[string][]string `json:"security,omitzero"` // empty for an operation without one
	Grant       string                `json:"x-grant"`
}

// Parameter is one of path, query or header.
type Parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitzero"`
	Style       string `json:"style,omitempty"`
	Explode     bool   `json:"explode,omitzero"`
	Schema      Schema `json:"schema"`
}

// Body is what a request carries.
type Body struct {
	Description string           `json:"description,omitempty"`
	Required    bool             `json:"required,omitzero"`
	Content     map[string]Media `json:"content"`
}

// Media is a representation.
type Media struct {
	Schema any `json:"schema,omitzero"` // a Schema, or JSON
}

// Response is how a request ends with one status.
type Response struct {
	Description string           `json:"description"`
	Headers     map[string]Ref   `json:"headers,omitempty"`
	Content     map[string]Media `json:"content,omitempty"`
}

// Header is one of a response.
type Header struct {
	Description string `json:"description,omitempty"`
	Schema      Schema `json:"schema"`
}

// Ref names a component.
type Ref struct {
	To string `json:"$ref"`
}

// Components are what is referred to.
type Components struct {
	Schemas    map[string]any            `json:"schemas"` // a Schema, or JSON
	Responses  map[string]Response       `json:"responses"`
	Parameters map[string]Parameter      `json:"parameters"`
	Headers    map[string]Header         `json:"headers"`
	Security   map[string]SecurityScheme `json:"securitySchemes"`
}

// SecurityScheme is a way to say who calls.
type SecurityScheme struct {
	Type        string `json:"type"`
	Description string `json:"description"`
	Scheme      string `json:"scheme,omitempty"`
	Format      string `json:"bearerFormat,omitempty"`
	In          string `json:"in,omitempty"`
	Name        string `json:"name,omitempty"`
}
