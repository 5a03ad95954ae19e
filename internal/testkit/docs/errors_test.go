package docs_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/testkit/docs"
	"github.com/pawlhq/pawl/workflow"
)

// Problem documents link to docs/errors.md#code, so it has to have every code.
func TestErrors_Golden(t *testing.T) {
	docs.File(t, "docs/errors.md", errorsDocument())
}

func errorsDocument() string {
	var b strings.Builder
	b.WriteString(`# Errors

Every error is a problem document (RFC 9457) with a stable ` + "`code`" + `:

` + "```json" + `
{"type":"https://github.com/pawlhq/pawl/blob/main/docs/errors.md#illegal_transition",
 "title":"the state does not allow the transition","status":409,"code":"illegal_transition",
 "detail":"\"ship\" is not possible in state \"placed\"; allowed are: pay, cancel. This answer is final for this key; another try needs a new key.",
 "final":true,"state":"placed","allowed":["pay","cancel"]}
` + "```" + `

In Go, errors are ` + "`*workflow.Error`; `workflow.CodeOf(err)`" + ` returns the code. SQLSTATEs are those of the [contract in SQL](sql.md).
This page is generated from ` + "`workflow.Codes` by `make generate`" + `.

Only final errors are stored. Each code belongs to a class, which describes a retry with the same key:

| class | the same key |
|---|---|
| final | gets this answer again, until it expires; another attempt needs a new key |
| request | can be used for the corrected request |
| caller | can be used by a permitted caller |
| key | is rejected again; a new intent needs a new key |
| message | is rejected again; an operator can retry or discard the dead message |
| temporary | may succeed later: send the same request again, after ` + "`Retry-After`" + ` |
`)
	for _, c := range workflow.Codes {
		fmt.Fprintf(&b, "\n### %s\n%d %s (*%s*", c.Code, c.Status, http.StatusText(c.Status), classOf(c))
		if c.SQLState != "" {
			b.WriteString(", " + c.SQLState)
		}
		b.WriteString("): " + c.Meaning + ".\n")
	}
	return b.String()
}

// classOf returns the class of a code, which describes a retry with the same key.
func classOf(c workflow.CodeInfo) string {
	switch {
	case c.Final:
		return "final"
	case c.Retry:
		return "temporary"
	case c.Code == workflow.KeyReused || c.Code == workflow.KeyExpired:
		return "key"
	case c.Code == workflow.MessageReused || c.Code == workflow.MessageNotTaken:
		return "message"
	case c.Status == http.StatusForbidden || c.Status == http.StatusUnauthorized:
		return "caller"
	}
	return "request"
}
