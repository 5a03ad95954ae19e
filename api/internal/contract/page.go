package contract

import "embed"

// Page is the page on which people read the OpenAPI document, in the folder "page". rapidoc.js is dist/rapidoc-min.js of the
// npm package rapidoc, as it is there; its licence stands beside it.
//
//go:embed page
var Page embed.FS
