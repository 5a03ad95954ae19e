package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/docs"
)

var routesBlock = regexp.MustCompile(`(?s)(<!-- (routes|naming|header|query|answer|operations)(?: of )?(.*?) -->\n).*?(<!-- end -->)`)

// The tables of the protocol's pages are made from the table of routes.
func TestRoutes_Golden(t *testing.T) {
	paths, err := filepath.Glob("docs/protocol*.md")
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, path := range paths {
		want := routesBlock.ReplaceAllStringFunc(page(t, path), func(block string) string {
			part := routesBlock.FindStringSubmatch(block)
			table := tableOf(part[2], part[3])
			listed[part[3]] = listed[part[3]] || part[2] == "routes"
			assert.Truef(t, strings.Count(table, "\n") >= 3, "there is nothing for %s", part[1])
			return part[1] + strings.ReplaceAll(table, "]("+filepath.Base(path)+"#", "](#") + part[4]
		})
		docs.File(t, path, want)
	}
	for _, r := range api.Routes() {
		assert.Truef(t, listed[r.Section], "%s %s is in the section %q, which has no table", r.Method, r.Path, r.Section)
	}
}

func tableOf(kind, of string) string {
	switch kind {
	case "routes":
		return routesOf(of)
	case "answer":
		return answerHeaders(of)
	case "operations":
		return operationsOf(of)
	case "naming":
		return parametersOf(of, api.InHeader, true)
	}
	return parametersOf(of, api.Place(kind), false)
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
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", address, holdersOf(r.Grant), r.Doc)
	}
	return b.String()
}

func holdersOf(g api.Grant) string {
	switch g {
	case api.Public:
		return "public"
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
