package pawl

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/workflow"
)

var update = flag.Bool("update", false, "write the documents that are generated")

// Problem documents link to docs/errors.md#code, so it has to have every code.
func TestErrorsAreDocumented(t *testing.T) {
	const path = "docs/errors.md"
	want := errorsDocument()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s does not say what workflow.Codes says; run go test . -run Documented -update", path)
	}
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
` + "`workflow.Codes`" + `, by ` + "`go test . -run Documented -update`" + `. The SQLSTATEs are those of the [contract in SQL](sql.md).

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

// spent reports whether the key is lost to this request for good.
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

var decisionTitle = regexp.MustCompile(`^# 0*(\d+)\.? (.*)\n`)

// The index lists the notes by their titles, "# 7. Title".
func TestDecisionsAreInTheIndex(t *testing.T) {
	const path, begin = "docs/decisions/README.md", "| | |\n|---|---|\n"
	notes, err := filepath.Glob("docs/decisions/0*.md")
	if err != nil || len(notes) == 0 {
		t.Fatal(notes, err)
	}
	var table strings.Builder
	for _, note := range notes {
		text, err := os.ReadFile(note)
		if err != nil {
			t.Fatal(err)
		}
		title := decisionTitle.FindStringSubmatch(string(text))
		if title == nil {
			t.Fatalf("%s does not begin with a title like # 7. Why", note)
		}
		fmt.Fprintf(&table, "| [%s](%s) | %s |\n", title[1], filepath.Base(note), title[2])
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(got), begin)
	want := before + begin + table.String()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !ok || string(got) != want {
		t.Errorf("%s is not up to date; run go test . -run Decisions -update", path)
	}
}
