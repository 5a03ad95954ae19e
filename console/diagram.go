package console

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// markedTransitions is the number of newest transitions marked in a diagram.
const markedTransitions = 100

// arrow is an arrow of a diagram.
type arrow struct{ from, to workflow.State }

// instanceDiagram serves the diagram of an instance's workflow, with its state and its transitions.
func (v *visit) instanceDiagram() error {
	path := v1("instances", v.r.PathValue("id"))
	a, err := v.ask(http.MethodGet, path+"/diagram", url.Values{"format": {"svg"}}, nil)
	if err != nil {
		return err
	}
	version, _ := strconv.ParseInt(v.Query("v"), 10, 64)
	history, err := get[wire.History](v, path+"/history", url.Values{"after": {strconv.FormatInt(max(0, version-markedTransitions), 10)},
		"limit": {strconv.Itoa(markedTransitions)}})
	if err != nil {
		return err
	}
	var taken []arrow
	for _, e := range history.Entries {
		if a := (arrow{e.From, e.To}); !slices.Contains(taken, a) {
			taken = append(taken, a)
		}
	}
	return v.forward(a, mark(a.body.Bytes(), taken))
}

// mark adds styles to a diagram that highlight arrows. Arrows have data-from and data-to; the start of a workflow is the state "".
func mark(svg []byte, taken []arrow) []byte {
	var rules strings.Builder
	for _, scheme := range []struct{ name, colour string }{{"light", "#1b6f5c"}, {"dark", "#7fd6bf"}} {
		fmt.Fprintf(&rules, "@media (prefers-color-scheme:%s){", scheme.name)
		for _, a := range taken {
			arrow := fmt.Sprintf(`[data-from="%s"][data-to="%s"]`, cssText(string(a.from)), cssText(string(a.to)))
			fmt.Fprintf(&rules, "%s .pawl-lines{stroke:%s;stroke-width:2.8}%[1]s .pawl-tips{fill:%[2]s}", arrow, scheme.colour)
		}
		rules.WriteString("}")
	}
	return bytes.Replace(svg, []byte("</style>"), []byte(rules.String()+"</style>"), 1)
}

// cssText escapes a text for a CSS string in XML: all characters except letters and digits.
func cssText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\%x `, r)
		}
	}
	return b.String()
}
