package console

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api"
)

// helpers are what templates write with.
var helpers = template.FuncMap{
	"when":    when,
	"number":  number,
	"join":    join,
	"pretty":  func(v jsontext.Value) Pretty { return pretty(v, maxShown) },
	"shorter": func(v jsontext.Value) Pretty { return pretty(v, maxShown/5) },
	"short":   short,
	"list":    func(items ...any) []any { return items },
	"str":     func(v any) string { return fmt.Sprint(v) },
	"query":   query,
	"runbook": runbook,
	"kinds":   func() []string { return api.CommandKinds },
	"plural":  plural,
	"lasting": lasting,
	"span":    span,
	"int":     func(n int64) int { return int(n) },
}

// runbooks is where the documentation says what to do.
const runbooks = "https://github.com/pawlhq/pawl/blob/main/docs/operations.md#"

func runbook(anchor string) string { return runbooks + anchor }

// when writes a moment, "–" for none.
func when(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339Nano) + `">` + t.Format("2006-01-02 15:04:05") + `</time>`)
}

// lasting writes how long something took.
func lasting(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d days %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// span is a duration as a workflow declares it, without what is zero at its end.
func span(text string) string {
	if s, is := strings.CutSuffix(text, "m0s"); is {
		text = s + "m"
	}
	if s, is := strings.CutSuffix(text, "h0m"); is {
		text = s + "h"
	}
	return text
}

// number writes an integer with a narrow space between thousands.
func number(v any) string {
	text := fmt.Sprint(v)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return sign + text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// join writes a list of texts, whatever their type.
func join(list any, between string) string {
	values := reflect.ValueOf(list)
	texts := make([]string, values.Len())
	for i := range texts {
		texts[i] = fmt.Sprint(values.Index(i).Interface())
	}
	return strings.Join(texts, between)
}

// maxShown is how much of a text or of JSON a page has; the rest is a download.
const maxShown = 20_000

// Pretty is JSON for people.
type Pretty struct {
	Text string
	Cut  bool // it is longer
}

// pretty indents JSON without reading its numbers, so that large ones stay as they are, up to so many bytes.
func pretty(v jsontext.Value, most int) Pretty {
	v = bytes.Clone(v)
	if err := v.Indent(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  ")); err != nil {
		return cut(string(v), most)
	}
	return cut(string(v), most)
}

func cut(text string, most int) Pretty {
	if len(text) <= most {
		return Pretty{Text: text}
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return Pretty{text[:end] + "…", true}
}

// short is the beginning of a text.
func short(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text[:min(len(text), 4*most)])[:most]) + "…"
}

// query is the query of an address, from pairs of a name and a value; what is empty is left out.
func query(pairs ...any) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if value := fmt.Sprint(pairs[i+1]); value != "" {
			q.Set(fmt.Sprint(pairs[i]), value)
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}
