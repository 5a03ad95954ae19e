package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
)

//go:embed static templates
var files embed.FS

// readFiles returns the files that match a pattern, by name.
func readFiles[T any](pattern string, read func(file string, body []byte) T) map[string]T {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		panic(err)
	}
	all := map[string]T{}
	for _, file := range names {
		body, err := files.ReadFile(file)
		if err != nil {
			panic(err)
		}
		all[path.Base(file)] = read(file, body)
	}
	return all
}

// asset is a file that every page uses.
type asset struct {
	media, tag string
	body       []byte
}

var assets = readFiles("static/*", func(file string, body []byte) asset {
	media := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	return asset{media[path.Ext(file)], entityTag(body), body}
})

func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

var layout = template.Must(template.New("").Funcs(helpers).ParseFS(files, "templates/layout/*.html"))

// templates are the pages with the layout.
var templates = readFiles("templates/*.html", func(_ string, body []byte) *template.Template {
	return template.Must(template.Must(layout.Clone()).Parse(string(body)))
})

// shown is the data of a template.
type shown struct {
	V     *visit
	Title string
	Here  string // part of the console
	P     any    // data of the page
}

// Updates describes how a page is updated: the event streams that report changes, the minimum interval between updates, and the interval
// of polling for parts that no stream reports. Both are in milliseconds.
type Updates struct {
	Streams []string
	Every   int
	Poll    int // 0: never
}

// pollInterval is how often the visible tab polls a page. That costs a few indexed statements.
const pollInterval = 3000

// polling is for pages that no event stream reports.
var polling = &Updates{Poll: pollInterval}

// show renders a page.
func (v *visit) show(name, title string, page any) error {
	return v.render(http.StatusOK, name, title, page)
}

func (v *visit) render(status int, name, title string, page any) error {
	here, _, _ := strings.Cut(strings.TrimPrefix(v.r.URL.Path, v.Path+"/"), "/")
	return v.write(status, name, "layout", shown{V: v, Title: title, Here: here, P: page})
}

// renderBare renders a page for users who have not signed in.
func (v *visit) renderBare(status int, name, title string, page any) error {
	return v.write(status, name, "bare", shown{V: v, Title: title, P: page})
}

// write renders the whole page before it sends any of it, so that errors can be reported. The entity tag avoids sending an unchanged page
// to the script that polls it.
func (v *visit) write(status int, name, frame string, s shown) error {
	var b bytes.Buffer
	if err := templates[name+".html"].ExecuteTemplate(&b, frame, s); err != nil {
		return fmt.Errorf("console: page %s: %w", name, err)
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if status == http.StatusOK && v.r.Method == http.MethodGet {
		v.w.Header().Set("ETag", entityTag(b.Bytes()))
		http.ServeContent(v.w, v.r, "", time.Time{}, bytes.NewReader(b.Bytes()))
		return nil
	}
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes())
	return nil
}

// At returns an address of the console.
func (v *visit) At(parts ...string) string { return v.Path + joinPath(parts...) }

// Home returns the address of the first page.
func (v *visit) Home() string { return v.Path + "/" }

// Docs returns the address of the API's documentation.
func (v *visit) Docs() string { return v.Prefix + "/docs" }

// Query returns a parameter of the address.
func (v *visit) Query(name string) string { return v.r.URL.Query().Get(name) }

// Token returns the CSRF token of forms.
func (v *visit) Token() string { return v.session.Token }

// Has reports whether the user has a right to any target.
func (v *visit) Has(right string) bool { return v.can.Has(auth.Right(right)) }

// May reports whether the user has a right to a target; "" selects all.
func (v *visit) May(right, workflow, instance, transition string) bool {
	t := auth.Target{Workflow: workflow, Transition: transition}
	t.Instance, _ = uuid.Parse(instance)
	return v.can.May(auth.Right(right), t)
}

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
