package chart

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// npmInstall downloads a package into a folder of the test.
func npmInstall(t *testing.T, name string) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm: install Node.js to compare with " + name)
	}
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--no-save", "--no-audit", "--no-fund", "--ignore-scripts",
		"--loglevel=error", "--omit=peer", name)
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("npm cannot download %s: %v\n%s", name, err, out)
	}
	return dir
}

// element is any element of an SCXML document.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
}

func (e *element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// needsData reports whether the document needs a data model, or an element that starts other programs.
func (e *element) needsData() bool {
	elements := []string{"datamodel", "script", "assign", "foreach", "if", "invoke", "param", "content"}
	attributes := []string{"cond", "idlocation", "targetexpr", "eventexpr", "delayexpr"}
	return slices.Contains(elements, e.XMLName.Local) || slices.ContainsFunc(attributes, func(n string) bool { return e.attr(n) != "" }) ||
		slices.ContainsFunc(e.Children, func(c element) bool { return c.needsData() })
}

// document is an SCXML document without a data model.
type document struct {
	states         []State
	transitions    []Transition
	events         []string // of each transition; "": eventless
	does           [][]element
	onEntry        map[int][]element
	onExit         map[int][]element
	onInitial      map[int][]element
	numbers        map[string]int
	initial        []string
	targets        []string
	historyOf      map[int]string
	initialOfState map[int]string
}

func readSCXML(t *testing.T, text []byte) *document {
	t.Helper()
	var root element
	require.NoError(t, xml.Unmarshal(text, &root))
	d := &document{onEntry: map[int][]element{}, onExit: map[int][]element{}, onInitial: map[int][]element{}, numbers: map[string]int{},
		historyOf: map[int]string{}, initialOfState: map[int]string{}}
	d.add(&root, -1)
	for s, text := range d.initialOfState {
		d.states[s].Initial = d.resolve(text)
	}
	for i, text := range d.targets {
		d.transitions[i].Targets = d.resolve(text)
	}
	return d
}

func (d *document) resolve(text string) (list []int) {
	for _, id := range strings.Fields(text) {
		list = append(list, d.numbers[id])
	}
	return list
}

func (d *document) add(e *element, parent int) {
	n := len(d.states)
	name := e.attr("id")
	if name == "" {
		name = "#" + strconv.Itoa(n)
	}
	kind := map[string]Kind{"parallel": Parallel, "final": Final, "history": Shallow}[e.XMLName.Local]
	if kind == Shallow && e.attr("type") == "deep" {
		kind = Deep
	}
	d.states = append(d.states, State{Name: name, Kind: kind, Parent: parent})
	d.numbers[name] = n
	if text := e.attr("initial"); text != "" {
		d.initialOfState[n] = text
	}
	for i := range e.Children {
		c := &e.Children[i]
		switch c.XMLName.Local {
		case "state", "parallel", "final", "history":
			d.add(c, n)
		case "initial":
			d.initialOfState[n] = c.Children[0].attr("target")
			d.onInitial[n] = c.Children[0].Children
		case "onentry":
			d.onEntry[n] = append(d.onEntry[n], c.Children...)
		case "onexit":
			d.onExit[n] = append(d.onExit[n], c.Children...)
		case "transition":
			if kind == Shallow || kind == Deep {
				d.initialOfState[n] = c.attr("target")
				continue
			}
			d.transitions = append(d.transitions, Transition{Source: n, Internal: c.attr("type") == "internal"})
			d.targets = append(d.targets, c.attr("target"))
			d.events = append(d.events, c.attr("event"))
			d.does = append(d.does, c.Children)
		}
	}
}

// run interprets a document: queues of events around the chart.
type run struct {
	*document
	*Chart
	config   Config
	internal []string
	external []string
	now      int
	delayed  []delayed
}

type delayed struct {
	at        int
	event, id string
}

func (r *run) do(list []element) {
	for _, e := range list {
		switch e.XMLName.Local {
		case "raise":
			r.internal = append(r.internal, e.attr("event"))
		case "send":
			ms, _ := strconv.Atoi(strings.TrimSuffix(e.attr("delay"), "ms"))
			if s, ok := strings.CutSuffix(e.attr("delay"), "s"); ok && !strings.HasSuffix(s, "m") {
				ms, _ = strconv.Atoi(s)
				ms *= 1000
			}
			r.delayed = append(r.delayed, delayed{r.now + ms, e.attr("event"), e.attr("id")})
		case "cancel":
			r.delayed = slices.DeleteFunc(r.delayed, func(d delayed) bool { return d.id == e.attr("sendid") })
		}
	}
}

func (r *run) take(transitions []int, s Step) {
	for _, n := range s.Exited {
		r.do(r.onExit[n])
	}
	for _, n := range transitions {
		r.do(r.does[n])
	}
	for _, n := range s.Entered {
		r.do(r.onEntry[n])
		r.do(r.onInitial[n])
	}
	for _, n := range s.Done {
		r.internal = append(r.internal, "done.state."+r.Name(n))
	}
	r.config = s.Config
}

// settle takes transitions without an event, then those of internal events, then those of external ones.
func (r *run) settle() {
	for range 1000 {
		if r.react("") {
			continue
		}
		if len(r.internal) > 0 {
			event := r.internal[0]
			r.internal = r.internal[1:]
			r.react(event)
			continue
		}
		if len(r.external) == 0 {
			r.wake()
		}
		if len(r.external) == 0 {
			return
		}
		event := r.external[0]
		r.external = r.external[1:]
		r.react(event)
	}
}

func (r *run) wake() {
	slices.SortStableFunc(r.delayed, func(a, b delayed) int { return a.at - b.at })
	for len(r.delayed) > 0 && r.delayed[0].at <= r.now {
		r.external = append(r.external, r.delayed[0].event)
		r.delayed = r.delayed[1:]
	}
}

func (r *run) react(event string) bool {
	taken := r.Select(r.config, func(t int) bool { return matches(r.events[t], event) })
	if len(taken) > 0 {
		r.take(taken, r.Take(r.config, taken))
	}
	return len(taken) > 0
}

// matches reports whether a list of event names, or prefixes of them, has an event.
func matches(names, event string) bool {
	if event == "" || names == "" {
		return event == names
	}
	return slices.ContainsFunc(strings.Fields(names), func(n string) bool {
		n = strings.TrimSuffix(strings.TrimSuffix(n, "*"), ".")
		return n == "" || n == event || strings.HasPrefix(event, n+".")
	})
}

func (r *run) names() (list []string) {
	for _, s := range r.Atomic(r.config) {
		list = append(list, r.Name(s))
	}
	slices.Sort(list)
	return list
}

func TestSCXMLFramework(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(npmInstall(t, "@scion-scxml/test-framework@2.0.16"),
		"node_modules/@scion-scxml/test-framework/test/*/*.scxml"))
	require.NoError(t, err)
	passed := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var root element
		if strings.Contains(file, "w3c-ecma") || xml.Unmarshal(text, &root) != nil || root.needsData() {
			continue
		}
		passed++
		t.Run(filepath.Base(filepath.Dir(file))+"/"+strings.TrimSuffix(filepath.Base(file), ".scxml"), func(t *testing.T) {
			runSCXML(t, file, text)
		})
	}
	assert.Equal(t, 91, passed, "cases")
}

func runSCXML(t *testing.T, file string, text []byte) {
	var script struct {
		InitialConfiguration []string
		Events               []struct {
			After             int
			Event             struct{ Name string }
			NextConfiguration []string
		}
	}
	raw, err := os.ReadFile(strings.TrimSuffix(file, ".scxml") + ".json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &script))
	d := readSCXML(t, text)
	c, err := New(d.states, d.transitions)
	require.NoError(t, err)
	r := &run{document: d, Chart: c}
	r.take(nil, c.Start())
	r.settle()
	assert.Equal(t, slices.Sorted(slices.Values(script.InitialConfiguration)), r.names(), "at first")
	for i, e := range script.Events {
		r.now += e.After
		r.wake()
		r.settle()
		r.external = append(r.external, e.Event.Name)
		r.settle()
		assert.Equal(t, slices.Sorted(slices.Values(e.NextConfiguration)), r.names(), "after event %d, %q", i+1, e.Event.Name)
	}
}
