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

// stepsOfDiagram is how many of the newest transitions are marked in a diagram.
const stepsOfDiagram = 100

// arrow is one of a diagram's.
type arrow struct{ from, to workflow.State }

// instanceDiagram is the diagram of an instance's workflow, with its state and the way that it took.
func (v *visit) instanceDiagram() error {
	of := "/v1" + segments("instances", v.r.PathValue("id"))
	a, err := v.ask(http.MethodGet, of+"/diagram", url.Values{"format": {"svg"}}, nil)
	if err != nil {
		return err
	}
	version, _ := strconv.ParseInt(v.query("v"), 10, 64)
	history, err := get[wire.History](v, of+"/history", url.Values{"after": {strconv.FormatInt(max(0, version-stepsOfDiagram), 10)},
		"limit": {strconv.Itoa(stepsOfDiagram)}})
	if err != nil {
		return err
	}
	var taken []arrow
	for _, e := range history.Entries {
		if one := (arrow{e.From, e.To}); !slices.Contains(taken, one) {
			taken = append(taken, one)
		}
	}
	return v.forward(a, mark(a.body.Bytes(), taken))
}

// mark adds to the styles of a diagram what makes these arrows stand out. Arrows have data-from and data-to, and the start of a
// workflow is the state "".
func mark(svg []byte, taken []arrow) []byte {
	var rules strings.Builder
	for _, scheme := range []struct{ name, colour string }{{"light", "#1b6f5c"}, {"dark", "#7fd6bf"}} {
		fmt.Fprintf(&rules, "@media (prefers-color-scheme:%s){", scheme.name)
		for _, a := range taken {
			of := fmt.Sprintf(`[data-from="%s"][data-to="%s"]`, cssText(string(a.from)), cssText(string(a.to)))
			fmt.Fprintf(&rules, "%s .pawl-lines{stroke:%s;stroke-width:2.8}%[1]s .pawl-tips{fill:%[2]s}", of, scheme.colour)
		}
		rules.WriteString("}")
	}
	return bytes.Replace(svg, []byte("</style>"), []byte(rules.String()+"</style>"), 1)
}

// cssText escapes a text for a string of CSS in XML: all but letters and digits.
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
