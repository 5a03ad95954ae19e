// Package contract has the parts of an OpenAPI 3.1 document, and the page that shows it to readers. It knows no route:
// package api fills the document from its table.
package contract
