package diagram

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

var update = flag.Bool("update", false, "write the golden files")

type data struct{}

func act(*workflow.Call, *data, workflow.None) error { return nil }

func on(name string, to workflow.State, from ...workflow.State) *workflow.Transition[data, workflow.None] {
	return workflow.On(name, from, to, act)
}

func build(t testing.TB, d *workflow.Definition[data]) *workflow.Workflow {
	t.Helper()
	w, err := d.Build()
	require.NoError(t, err)
	return w
}

// order has five states, a way back, and a way out of two of them.
func order(t testing.TB) *workflow.Workflow {
	return build(t, workflow.Define("order", 1,
		workflow.Start("place", "placed", act).Doc("A customer's cart becomes an order."),
		on("pay", "paid", "placed"),
		on("ship", "shipped", "paid").Role("warehouse"),
		on("return", "placed", "shipped").Role("warehouse", "desk"),
		on("deliver", "delivered", "shipped").Role("carrier"),
		on("cancel", "cancelled", "placed", "paid").NotBy("pay").
			Guard("not packed", func(*workflow.Call, data) error { return nil }),
	).Final("delivered", "cancelled").Roles("warehouse", "desk", "carrier"))
}

// fine is an appeal against a fine: two ways in, eleven transitions, loops,
// arrows that stand for two transitions, targets that the action chooses among.
func fine(t testing.TB) *workflow.Workflow {
	return build(t, workflow.Define("fine", 3,
		workflow.Start("create", "created", act),
		workflow.Start("import", "sent", act).Role("clerk"),
		on("send", "sent", "created").Role("clerk"),
		on("pay", workflow.Stay, "created", "sent", "notified", "penalised").Or("closed"),
		on("notify", "notified", "sent"),
		on("add-penalty", "penalised", "notified"),
		on("appeal-to-prefecture", "appealed", "notified", "penalised").Role("offender"),
		on("appeal-to-judge", "in-court", "notified", "penalised", "appealed").Role("offender"),
		on("decide", "closed", "appealed").Or("penalised").Role("prefect").NotBy("send"),
		on("rule", "closed", "in-court").Or("penalised").Role("judge"),
		on("note", workflow.Stay, "appealed", "in-court").Role("clerk"),
		on("collect", "collected", "penalised").Role("clerk"),
		on("write-off", "closed", "penalised").Role("clerk"),
	).Final("closed", "collected").Roles("clerk", "offender", "prefect", "judge"))
}

// payment has activities that share states, undo each other and fail, and
// timers of both kinds.
func payment(t testing.TB) *workflow.Workflow {
	work := func(context.Context, *workflow.Attempt, data, workflow.None) (int, error) { return 0, nil }
	done := func(*workflow.Call, *data, int) error { return nil }
	failed := func(*workflow.Call, *data, workflow.Failure) error { return nil }
	return build(t, workflow.Define("payment", 1,
		workflow.Start("place", "placed", act),
		workflow.Do("pay", workflow.From("placed", "unpaid"), "paying", "paid", work, done).Or("placed").OrElse("unpaid", failed).
			Doc("The provider is asked.").Timeout(5*time.Second).
			Undo(func(context.Context, *workflow.Attempt, data, workflow.None, *int) error { return nil }),
		workflow.Do("ship", workflow.From("paid"), "shipping", "shipped", work, done).OrElse("unpaid", failed).
			Role("warehouse").Undoes("pay").Settles("pay").Retry(workflow.Retry{Attempts: 3}),
		on("cancel", "cancelled", "placed", "paying", "unpaid").Role("customer"),
		on("remind", workflow.Stay, "placed").Role("clock"),
		on("expire", "cancelled", "placed", "unpaid").Role("clock"),
	).Final("shipped", "cancelled").Roles("warehouse", "customer", "clock").
		After("reminder", workflow.From("placed"), 90*time.Minute, "remind").
		After("patience", workflow.From("placed", "unpaid"), 48*time.Hour, "expire").
		At("deadline", workflow.From("placed"), func(data) time.Time { return time.Time{} }, "expire").
		After("hurry", workflow.From("paying"), 24*time.Hour, "cancel"))
}

func TestGolden(t *testing.T) {
	svg := func(w *workflow.Workflow, o Options) string {
		t.Helper()
		out, err := SVG(w, o)
		require.NoError(t, err)
		return string(out)
	}
	for file, draw := range map[string]func() string{
		"order.mmd":           func() string { return Mermaid(order(t), Options{}) },
		"order.dot":           func() string { return DOT(order(t), Options{}) },
		"order.svg":           func() string { return svg(order(t), Options{}) },
		"order-paid.mmd":      func() string { return Mermaid(order(t), Options{Current: "paid", Direction: LeftRight}) },
		"order-paid.dot":      func() string { return DOT(order(t), Options{Current: "paid", Direction: LeftRight}) },
		"order-paid.svg":      func() string { return svg(order(t), Options{Current: "paid", Direction: LeftRight}) },
		"fine.mmd":            func() string { return Mermaid(fine(t), Options{}) },
		"fine-penalised.dot":  func() string { return DOT(fine(t), Options{Current: "penalised"}) },
		"fine-penalised.svg":  func() string { return svg(fine(t), Options{Current: "penalised"}) },
		"payment.mmd":         func() string { return Mermaid(payment(t), Options{}) },
		"payment.dot":         func() string { return DOT(payment(t), Options{}) },
		"payment-paying.svg":  func() string { return svg(payment(t), Options{Current: "paying"}) },
		"payment.svg":         func() string { return svg(payment(t), Options{Direction: LeftRight}) },
		"fine-left-right.svg": func() string { return svg(fine(t), Options{Direction: LeftRight}) },
	} {
		t.Run(file, func(t *testing.T) {
			got := draw()
			assert.Equal(t, got, draw(), "it is drawn in two ways")
			golden := filepath.Join("testdata", file)
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Truef(t, alike(got, string(want)), "it has changed; look at it, then run with -update\n%s", got)
		})
	}
}

var lengths = regexp.MustCompile(`-?\d+(\.\d+)?`)

// alike compares two pictures. Processors that fuse a multiplication with an
// addition may round a length to another tenth of a pixel.
func alike(a, b string) bool {
	if lengths.ReplaceAllString(a, "#") != lengths.ReplaceAllString(b, "#") {
		return false
	}
	as, bs := lengths.FindAllString(a, -1), lengths.FindAllString(b, -1)
	for i := range as {
		x, errX := strconv.ParseFloat(as[i], 64)
		y, errY := strconv.ParseFloat(bs[i], 64)
		if errX != nil || errY != nil || math.Abs(x-y) > 0.25 {
			return false
		}
	}
	return true
}

// What happens by itself says when, in the words of a reader.
func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Millisecond: "1ms", 90 * time.Second: "1m30s", time.Minute: "1m", 90 * time.Minute: "1h30m",
		time.Hour: "1h", time.Hour + time.Second: "1h0m1s", 10 * time.Second: "10s", 20 * time.Hour: "20h",
		24 * time.Hour: "24h", 48 * time.Hour: "2d", 60 * 24 * time.Hour: "60d", 36 * time.Hour: "36h",
	} {
		assert.Equalf(t, want, span(d), "%d", d)
	}
}

func TestUnknownCurrentState(t *testing.T) {
	w := order(t)
	_, err := SVG(w, Options{Current: "lost"})
	assert.EqualError(t, err, `diagram: workflow "order" has no state "lost"`, "SVG")
	assert.Equal(t, Mermaid(w, Options{}), Mermaid(w, Options{Current: "lost"}), "Mermaid marks something")
	assert.Equal(t, DOT(w, Options{}), DOT(w, Options{Current: "lost"}), "DOT marks something")
}

// hostile is a workflow whose texts try to break out of every format.
func hostile(t testing.TB) *workflow.Workflow {
	const text = "</title><script>alert(1)</script> \"'&]]>--> \\\" \\N %% ;\r\n\tend\x00\x01\u2028\ufffe <svg onload=x>"
	return build(t, workflow.Define("w", 1,
		workflow.Start("go", "state", act).Doc(text).Guard(text, func(*workflow.Call, data) error { return nil }),
		on("on", "end", "state").Doc(text+`\`),
	).Final("end"))
}

func TestSVGIsWellFormedAndHarmless(t *testing.T) {
	for _, w := range []*workflow.Workflow{order(t), fine(t), payment(t), hostile(t)} {
		for _, direction := range []Direction{TopDown, LeftRight} {
			out, err := SVG(w, Options{Direction: direction})
			require.NoError(t, err)
			allowed := map[string]bool{
				"svg": true, "title": true, "desc": true, "style": true, "g": true, "path": true,
				"rect": true, "circle": true, "text": true,
			}
			titles := 0
			d := xml.NewDecoder(strings.NewReader(string(out)))
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err, w.Name)
				element, ok := token.(xml.StartElement)
				if !ok {
					continue
				}
				assert.Truef(t, allowed[element.Name.Local], "%s: element %s", w.Name, element.Name.Local)
				if element.Name.Local == "title" {
					titles++
				}
				for _, a := range element.Attr {
					assert.Truef(t, !strings.HasPrefix(a.Name.Local, "on") && !strings.Contains(a.Name.Local, "href"),
						"%s: attribute %s", w.Name, a.Name.Local)
				}
			}
			assert.Equalf(t, 1+len(pictureOf(w).arrows), titles, "%s titles", w.Name)
		}
	}
}

// Every line of the DOT text is words and quoted strings, whatever the texts
// say.
func TestDOTQuotes(t *testing.T) {
	quoted := regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
	plain := regexp.MustCompile(`^[\w {}\[\]=,.>;-]*$`)
	for line := range strings.Lines(DOT(hostile(t), Options{})) {
		rest := quoted.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
		assert.Truef(t, plain.MatchString(rest), "outside of quotes: %q in %q", rest, line)
	}
}

// Mermaid's text has only names in it, which cannot break anything.
func TestMermaidHasNoTexts(t *testing.T) {
	want := `stateDiagram-v2
    accTitle: w, version 1
    direction TB
    state "state" as s_state
    state "end" as s_end
    [*] --> s_state : go
    s_state --> s_end : on
    s_end --> [*]
`
	assert.Equal(t, want, Mermaid(hostile(t), Options{}))
}

func TestMermaidIDs(t *testing.T) {
	states := []workflow.State{"paid", "in-court", "in_court", "1st", "s_1st", "end", "state", "a-b-", "a_b_", "a_b__"}
	want := []string{"paid", "in_court_", "in_court", "s_1st_", "s_1st", "s_end", "s_state", "a_b___", "a_b_", "a_b__"}
	ids := mermaidIDs(states)
	for i, s := range states {
		assert.Equalf(t, want[i], ids[s], "%s became", s)
	}
}
