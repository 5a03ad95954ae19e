package ops

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printTable prints a list in columns, with a row for each. Those of the header
// that begin with a ">" have numbers, which stand on the right.
func printTable[T any](w io.Writer, header []string, list []T, row func(*T) []string) error {
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
			cells[i] = visible(cells[i])
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

// printLines prints what something is called and what it is, which begins in the
// column width. A pair of nothing is an empty line.
func printLines(w io.Writer, width int, lines [][2]string) error {
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-*s%s", width, l[0], visible(l[1])), " ")); err != nil {
			return err
		}
	}
	return nil
}

// visible is a text without what a terminal would obey: callers choose keys, and
// receivers the words of a failure.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// moment is a time as a table shows it.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// maybe is a time that there may not be, as a table shows it.
func maybe(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return moment(*t)
}

// since is how long before now something was, in the two largest units.
func since(now, then time.Time) string {
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

// count is a number, and says of an estimate that it is one.
func count(n int64, estimate bool) string {
	if estimate {
		return fmt.Sprintf("~%d", n)
	}
	return fmt.Sprint(n)
}

// orNone is a text as a table shows it: in one line, and "-" for none.
func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Join(strings.Fields(s), " ")
}
