package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/docs"
	"github.com/pawlhq/pawl/workflow"
)

var routesBlock = regexp.MustCompile(`(?s)(<!-- (routes|naming|header|query|answer|operations|all)(?: of )?(.*?) -->\n).*?(<!-- end -->)`)

// The tables of docs/protocol.md are made from the table of routes.
func TestRoutes_Golden(t *testing.T) {
	const path = "docs/protocol.md"
	listed := map[string]bool{}
	want := routesBlock.ReplaceAllStringFunc(page(t, path), func(block string) string {
		part := routesBlock.FindStringSubmatch(block)
		var table string
		switch kind, of := part[2], part[3]; kind {
		case "routes":
			listed[of] = true
			table = routesOf(of)
		case "all":
			table = everyRoute()
		case "answer":
			table = answerHeaders(of)
		case "operations":
			table = operationsOf(of)
		case "naming":
			table = parametersOf(of, api.InHeader, true)
		default:
			table = parametersOf(of, api.Place(kind), false)
		}
		assert.Truef(t, strings.Count(table, "\n") >= 3, "there is nothing for %s", part[1])
		return part[1] + table + part[4]
	})
	for _, r := range api.Routes() {
		assert.Truef(t, listed[r.Section], "%s %s is in the section %q, which has no table", r.Method, r.Path, r.Section)
	}
	docs.File(t, path, want)
}

func routesOf(section string) string {
	var b strings.Builder
	for _, r := range api.Routes() {
		if r.Section != section {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("| request | for | |\n|---|---|---|\n")
		}
		var query []string
		for _, p := range r.Params {
			if p.In == api.InQuery {
				query = append(query, strings.Replace(p.Name+"=", ".=", ".NAME=", 1))
			}
		}
		address := r.Method + " " + strings.Replace(r.Path, "...", "", 1)
		if query != nil {
			address += "?" + strings.Join(query, "&")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", address, whoHas(r.Grant), r.Doc)
	}
	return b.String()
}

func whoHas(g api.Grant) string {
	switch g {
	case api.Public:
		return "anybody"
	case api.AnyCaller:
		return "callers"
	}
	return "`" + string(g) + "`"
}

// parametersOf are those of a route that stand at one place: those that say who calls where a caller is believed, or the others.
func parametersOf(pattern string, in api.Place, believed bool) string {
	var b strings.Builder
	b.WriteString("| " + string(in) + " | | |\n|---|---|---|\n")
	for _, p := range routeOf(pattern).Params {
		if p.In == in && p.Believed == believed {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.Replace(p.Name+" ", ". ", ".NAME", 1), meantBy(p), p.Doc)
		}
	}
	return strings.ReplaceAll(b.String(), " ` |", "` |")
}

// answerHeaders are those that the answers of a route may have; of "", any answer.
func answerHeaders(pattern string) string {
	var b strings.Builder
	b.WriteString("| header of the answer | |\n|---|---|\n")
	headers := routeOf(pattern).Headers
	if pattern == "" {
		headers = api.AnswerHeaders()
	}
	for _, h := range headers {
		fmt.Fprintf(&b, "| `%s` | %s |\n", h.Name, h.Doc)
	}
	return b.String()
}

// operationsOf are what a client may ask on a WebSocket.
func operationsOf(pattern string) string {
	var b strings.Builder
	b.WriteString("| `op` | grant | |\n|---|---|---|\n")
	for _, o := range routeOf(pattern).Operations {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", o.Name, o.Grant, o.Doc)
	}
	return b.String()
}

// routeOf finds a route by its method and path. One that is not there has nothing to show.
func routeOf(pattern string) (found api.Route) {
	for _, r := range api.Routes() {
		if r.Method+" "+r.Path == pattern {
			found = r
		}
	}
	return found
}

// meantBy is what a parameter can be.
func meantBy(p api.Param) string {
	what := string(p.Kind)
	switch {
	case p.Values != nil:
		what = "`" + strings.Join(p.Values, "`, `") + "`"
	case p.Kind == api.Boolean:
		what = "`true`, `false`"
	case p.Kind == api.Integer && p.Max > 1<<40:
		what = fmt.Sprintf("integer from %d", p.Min)
	case p.Kind == api.Integer:
		what = fmt.Sprintf("integer, %d to %d", p.Min, p.Max)
	}
	if p.Default != "" {
		what += "; `" + p.Default + "` by default"
	}
	if p.Required {
		what += "; required"
	}
	if p.Needs != "" {
		what += "; with `" + p.Needs + "`"
	}
	if p.Many > 0 {
		what += fmt.Sprintf(", up to %d times", p.Many)
	}
	if p.Grant == api.OperateAll {
		what += "; `true` is for `" + string(api.OperateAll) + "`"
	}
	return what
}

// anywhere is what can go wrong with every request of a caller.
var anywhere = []workflow.Code{workflow.InvalidRequest, workflow.Unauthorized, workflow.Forbidden, workflow.RateLimited,
	workflow.Unavailable, workflow.TimedOut, workflow.Internal}

// everyRoute says of each route what it takes and answers.
func everyRoute() string {
	var b strings.Builder
	b.WriteString("| request | grant | takes | answers | problems |\n|---|---|---|---|---|\n")
	for _, r := range api.Routes() {
		var takes, answers, problems []string
		for _, p := range r.Params {
			if p.In != api.InPath && !p.Believed {
				takes = append(takes, "`"+p.Name+"`")
			}
		}
		if r.Body != nil {
			takes = append(takes, bodyOf(r.Body))
		}
		for _, a := range r.Answers {
			text := strings.TrimSpace(fmt.Sprint(a.Status, " ", strings.TrimPrefix(a.Media, "application/")))
			if a.Type != nil && strings.Contains(a.Type.PkgPath(), "pawl") {
				text += " " + a.Type.Name()
			}
			if a.Grant != "" {
				text += " (" + string(a.Grant) + ")"
			}
			answers = append(answers, text)
		}
		for _, c := range r.Codes {
			if !slices.Contains(anywhere, c) {
				problems = append(problems, "`"+string(c)+"`")
			}
		}
		fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s | %s |\n", r.Method, r.Path, r.Grant, strings.Join(takes, ", "), strings.Join(answers, ", "),
			strings.Join(problems, ", "))
	}
	return b.String()
}

func bodyOf(b *api.Body) string {
	text := "a body"
	if b.Type != nil {
		text = b.Type.Name()
		if text == "" {
			text = b.Type.Elem().Name() + "s"
		}
	}
	return strings.TrimSpace(text + " " + strings.ReplaceAll(strings.Join(b.Media, " or "), "application/", ""))
}
