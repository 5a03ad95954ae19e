// Package contract is what the documents for machines are made of: the parts of an OpenAPI 3.1 document,
// the JSON Schemas of Go types, and the page on which people read them. It knows no route: package api fills
// the documents from its table.
package contract
