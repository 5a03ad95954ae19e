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

Every error is a problem document (RFC 9457), and its ` + "`code`" + ` is stable:

` + "```json" + `
{"type":"https://github.com/pawlhq/pawl/blob/main/docs/errors.md#illegal_transition",
 "title":"the state does not allow the transition","status":409,"code":"illegal_transition",
 "detail":"\"ship\" is not possible in state \"placed\"; allowed are: pay, cancel. This answer is final for this key; another try needs a new key.",
 "final":true,"state":"placed","allowed":["pay","cancel"]}
` + "```" + `

In Go it is a ` + "`*workflow.Error`" + `; ` + "`workflow.CodeOf(err)`" +
		` tells the code. This page is generated from the table of the codes,
` + "`workflow.Codes`" + `, by ` + "`make generate`" + `. The SQLSTATEs are those of the [contract in SQL](sql.md).

| code | status | stored | the same key again |
|---|---|---|---|
`)
	for _, c := range workflow.Codes {
		stored, again := "no", "after mending the request"
		switch {
		case c.Final:
			stored, again = "yes", "gets this answer again"
		case c.Retry:
			again = "may succeed later"
		case spent(c.Code) || unconsumed(c.Code):
			again = "is refused again"
		case barred(c):
			again = "may succeed for a caller who is allowed"
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %d | %s | %s |\n", c.Code, c.Code, c.Status, stored, again)
	}
	for _, c := range workflow.Codes {
		fmt.Fprintf(&b, "\n### %s\n%d %s", c.Code, c.Status, http.StatusText(c.Status))
		if c.SQLState != "" {
			fmt.Fprintf(&b, ", SQLSTATE %s", c.SQLState)
		}
		fmt.Fprintf(&b, ": %s. %s\n", c.Meaning, advice(c))
	}
	return b.String()
}

// spent reports whether the key can no longer be used for this request.
func spent(c workflow.Code) bool { return c == workflow.KeyReused || c == workflow.KeyExpired }

// unconsumed reports whether a message is on the list of dead ones.
func unconsumed(c workflow.Code) bool {
	return c == workflow.MessageReused || c == workflow.MessageNotTaken
}

// barred reports whether it is about the caller, not about the request.
func barred(c workflow.CodeInfo) bool {
	return c.Status == http.StatusForbidden || c.Status == http.StatusUnauthorized
}

func advice(c workflow.CodeInfo) string {
	switch {
	case c.Final:
		return "The refusal is stored with the key, and every retry gets it again. Another try needs a new key."
	case spent(c.Code):
		return "Nothing was stored. A new intent needs a new key."
	case unconsumed(c.Code):
		return "It is on the list of dead messages, where an operator can have it retried or discarded."
	case c.Code == workflow.Internal:
		return "The same request with the same key may succeed later; the cause is in the log of the node."
	case c.Retry:
		return "Send the same request with the same key again, after the seconds that `Retry-After` names."
	case barred(c):
		return "Nothing was stored. A caller who is allowed can use the same key."
	default:
		return "Nothing was stored. Mend the request; the same key can be used."
	}
}
