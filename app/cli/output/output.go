// Package output is how all commands of the command line show what they have found: as JSON, or as text for people, with
// nothing in it that a terminal would obey.
package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

// JSON prints a value as indented JSON, with the members that it has over HTTP.
func JSON(w io.Writer, v any) error { return encode(w, v, jsontext.WithIndent("  ")) }

// Line prints a value as JSON in one line, for a list that has no end.
func Line(w io.Writer, v any) error { return encode(w, v) }

func encode(w io.Writer, v any, options ...json.Options) error {
	options = append(options, json.Deterministic(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	text, err := json.Marshal(v, options...)
	if err != nil {
		return err
	}
	_, err = w.Write(escaped(append(text, '\n')))
	return err
}

// escaped escapes control characters in JSON, so that a terminal does not interpret them. Its meaning as JSON is the same.
func escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, obeyed) {
		return text
	}
	var out []byte
	for _, r := range string(text) {
		if !obeyed(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, "\\u%04x", unit)
		}
	}
	return out
}

func obeyed(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }

// More tells that a list was cut short.
func More(c *cobra.Command, more bool) error {
	if !more {
		return nil
	}
	_, err := fmt.Fprintln(c.ErrOrStderr(), "there are more: see --limit")
	return err
}

// Part prints a table under a title, unless it is empty.
func Part[T any](w io.Writer, title string, more bool, header []string, list []T, row func(*T) []string) error {
	if len(list) == 0 {
		return nil
	}
	if more {
		title += ", the first of more"
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", title); err != nil {
		return err
	}
	return Table(w, header, list, row)
}

// Table prints a list in columns, with a row for each. Those of the header
// that begin with a ">" have numbers, which stand on the right.
func Table[T any](w io.Writer, header []string, list []T, row func(*T) []string) error {
	names := make([]string, len(header))
	for i, h := range header {
		names[i] = strings.TrimPrefix(h, ">")
	}
	rows := [][]string{names}
	for i := range list {
		rows = append(rows, row(&list[i]))
	}
	widths := make([]int, len(header))
	for _, cells := range rows {
		for i := range cells {
			cells[i] = Visible(cells[i])
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		for i, h := range header {
			if strings.HasPrefix(h, ">") {
				cells[i] = fmt.Sprintf("%*s", widths[i], cells[i])
			}
		}
		if _, err := fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// Lines prints what something is called and what it is, which begins in the
// column width. A pair of nothing is an empty line.
func Lines(w io.Writer, width int, lines [][2]string) error {
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-*s%s", width, l[0], Visible(l[1])), " ")); err != nil {
			return err
		}
	}
	return nil
}

// Visible is a text without what a terminal would obey: callers choose keys, and
// receivers the words of a failure.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// Text is Visible of a text of several lines.
func Text(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Visible(l)
	}
	return strings.Join(lines, "\n")
}

// Moment is a time as a table shows it.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// Maybe is a time that there may not be, as a table shows it.
func Maybe(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return Moment(*t)
}

// Since is how long before now something was, in the two largest units.
func Since(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	d := max(now.Sub(then), 0)
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// Count is a number, and says of an estimate that it is one.
func Count(n int64, estimate bool) string {
	if estimate {
		return fmt.Sprintf("~%d", n)
	}
	return fmt.Sprint(n)
}

// OrNone is a text as a table shows it: in one line, and "-" for none.
func OrNone(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Join(strings.Fields(s), " ")
}
