// Package output prints the results of commands as JSON or text, without control characters that a terminal would interpret.
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

// JSON prints a value as indented JSON, as the HTTP API encodes it.
func JSON(w io.Writer, v any) error { return encode(w, v, jsontext.WithIndent("  ")) }

// Print prints a value as JSON, or as text.
func Print(c *cobra.Command, asJSON bool, v any, text func(io.Writer) error) error {
	if asJSON {
		return JSON(c.OutOrStdout(), v)
	}
	return text(c.OutOrStdout())
}

// Line prints a value as one line of JSON.
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

// More reports on standard error that a list was truncated.
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

// Table prints a row for each entry. Columns whose header begins with ">" are right-aligned.
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

// Lines prints names and values, which begin in the column width. An empty pair is an empty line.
func Lines(w io.Writer, width int, lines [][2]string) error {
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-*s%s", width, l[0], Visible(l[1])), " ")); err != nil {
			return err
		}
	}
	return nil
}

// Visible replaces the control characters of a text, which callers and receivers choose.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// Text is like Visible, and keeps line breaks.
func Text(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Visible(l)
	}
	return strings.Join(lines, "\n")
}

// Moment formats a time; "-" if it is zero.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// Maybe is like Moment for a pointer.
func Maybe(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return Moment(*t)
}

// Since formats the time from then to now in its two largest units.
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

// Count formats a number, with "~" before an estimate.
func Count(n int64, estimate bool) string {
	if estimate {
		return fmt.Sprintf("~%d", n)
	}
	return fmt.Sprint(n)
}

// OrNone formats a text in one line; "-" if it is empty.
func OrNone(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Join(strings.Fields(s), " ")
}
