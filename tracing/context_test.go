package tracing

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const (
	parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	state  = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
)

func TestHeadersFollowTraceContext(t *testing.T) {
	t.Parallel()
	as := func(version, flags, rest string) string { return version + parent[2:53] + flags + rest }
	members := strings.TrimSuffix(strings.Repeat("a=1,", 32), ",")
	for name, tt := range map[string]struct {
		parent, state []string
		want          string
	}{
		"none":                  {nil, nil, ""},
		"a parent":              {[]string{parent}, nil, parent},
		"with blanks":           {[]string{" " + parent + "\t"}, nil, parent},
		"and a state":           {[]string{parent}, []string{state}, parent + " " + state},
		"a state in parts":      {[]string{parent}, []string{"a=1", "b=2"}, parent + " a=1,b=2"},
		"a state alone":         {nil, []string{state}, ""},
		"not sampled":           {[]string{as("00", "00", "")}, nil, as("00", "00", "")},
		"a random id":           {[]string{as("00", "03", "")}, nil, as("00", "03", "")},
		"unknown flags":         {[]string{as("00", "fd", "")}, nil, parent},
		"a later version":       {[]string{as("cc", "01", "")}, nil, parent},
		"one with more":         {[]string{as("cc", "01", "-what-comes")}, nil, parent},
		"and no dash before it": {[]string{as("cc", "01", ".what-comes")}, nil, ""},
		"version 00 with more":  {[]string{as("00", "01", "-")}, nil, ""},
		"version ff":            {[]string{as("ff", "01", "")}, nil, ""},
		"capital letters":       {[]string{strings.ToUpper(parent)}, nil, ""},
		"given twice":           {[]string{parent, parent}, []string{state}, ""},
		"two in one":            {[]string{parent + "," + parent}, nil, ""},
		"no trace":              {[]string{"00-" + strings.Repeat("0", 32) + parent[35:]}, nil, ""},
		"no span":               {[]string{parent[:36] + strings.Repeat("0", 16) + "-01"}, nil, ""},
		"too short":             {[]string{parent[:54]}, nil, ""},
		"huge":                  {[]string{strings.Repeat(parent, 1000)}, nil, ""},
		"empty":                 {[]string{""}, nil, ""},
		"another separator":     {[]string{strings.ReplaceAll(parent, "-", "_")}, nil, ""},
		"the longest state":     {[]string{parent}, []string{"a=" + strings.Repeat("x", 510)}, parent + " a=" + strings.Repeat("x", 510)},
		"a longer one":          {[]string{parent}, []string{"a=" + strings.Repeat("x", 511)}, parent},
		"32 members":            {[]string{parent}, []string{members}, parent + " " + members},
		"33 members":            {[]string{parent}, []string{members + ",b=1"}, parent},
		"a state for no header": {[]string{parent}, []string{"a=é"}, parent},
		"one that ends a line":  {[]string{parent}, []string{"a=1\r\nb: 2"}, parent},
	} {
		assert.Equalf(t, Context(tt.want), Of(tt.parent, tt.state), "%s, want %q", name, tt.want)
	}
}

func TestContextParts(t *testing.T) {
	t.Parallel()
	c := Of([]string{parent}, []string{state})
	assert.Truef(t, c.Traceparent() == parent && c.Tracestate() == state && c.Sampled() && c.ID() == parent[3:35],
		"got %q, %q, %v, %q", c.Traceparent(), c.Tracestate(), c.Sampled(), c.ID())
	for _, c := range []Context{"", Of([]string{parent[:54] + "0"}, nil)} {
		assert.Truef(t, !c.Sampled() && c.Tracestate() == "", "%q: %v, %q", c, c.Sampled(), c.Tracestate())
	}
	if none := Context(""); none.Traceparent() != "" || none.ID() != "" {
		t.Errorf("of nowhere: %q, %q", none.Traceparent(), none.ID())
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add(parent, state)
	f.Add("cc"+parent[2:]+"-x", "")
	f.Add("00-\x00", ",")
	f.Fuzz(func(t *testing.T, traceparent, tracestate string) {
		c := Of([]string{traceparent}, []string{tracestate})
		if c == "" {
			return
		}
		assert.Equal(t, c, Of([]string{c.Traceparent()}, []string{c.Tracestate()}), "and of its own headers")
		assert.Truef(t, len(c) <= 568 && len(c.ID()) == 32, "%q has %d bytes", c, len(c))
	})
}
