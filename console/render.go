package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/auth"
)

//go:embed templates
var templateFiles embed.FS

// templates are the pages by name, each with the layout around it.
var templates = parseTemplates()

func parseTemplates() map[string]*template.Template {
	frame := template.Must(template.New("").Funcs(helpers).ParseFS(templateFiles, "templates/layout/*.html"))
	all := map[string]*template.Template{}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is good
	}
	for _, file := range files {
		page := template.Must(template.Must(frame.Clone()).ParseFS(templateFiles, file))
		all[strings.TrimSuffix(path.Base(file), ".html")] = page
	}
	return all
}

// shown is what a template is given.
type shown struct {
	V     *visit
	Title string
	Here  string // the part of the console that the page is in
	P     any    // the page's own
}

// Live describes how a page is updated: the event streams that report changes, the minimum interval between updates, and the interval of
// polling for parts that no stream reports.
type Live struct {
	Streams []string
	Every   int // milliseconds
	Poll    int // milliseconds; 0: never
}

// pollEvery is how often a page is asked for again of which no stream tells: in milliseconds, by the tab that is looked at.
const pollEvery = 3000

// polled is a page that is updated by polling. It costs a few statements, each with an index.
type polled struct{}

func (polled) live() *Live { return &Live{Poll: pollEvery} }

// Live is nil for a page that stays as it is.
func (s shown) Live() *Live {
	if p, is := s.P.(interface{ live() *Live }); is {
		return p.live()
	}
	return nil
}

// show answers with a page.
func (v *visit) show(name, title string, page any) error {
	return v.render(http.StatusOK, name, title, page)
}

func (v *visit) render(status int, name, title string, page any) error {
	return v.write(status, name, "layout", shown{V: v, Title: title, Here: v.here(), P: page})
}

// bare answers with a page for users that have not signed in.
func (v *visit) bare(status int, name, title string, page any) error {
	return v.write(status, name, "bare", shown{V: v, Title: title, P: page})
}

// write makes the whole page before any of it is sent, so that what fails can still be told. The script, which asks again and again,
// says which one it has, and need not read the same one twice.
func (v *visit) write(status int, name, frame string, s shown) error {
	var b bytes.Buffer
	if err := templates[name].ExecuteTemplate(&b, frame, s); err != nil {
		return fmt.Errorf("console: page %s: %w", name, err)
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if status == http.StatusOK && v.r.Method == http.MethodGet {
		v.w.Header().Set("ETag", tagOf(b.Bytes()))
		http.ServeContent(v.w, v.r, "", time.Time{}, bytes.NewReader(b.Bytes()))
		return nil
	}
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes())
	return nil
}

// here is the first part of the path below the console.
func (v *visit) here() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(v.r.URL.Path, v.Path+"/"), "/")
	return name
}

// At is an address of the console, for templates.
func (v *visit) At(texts ...string) string { return v.at(texts...) }

// Home is the address of the first page.
func (v *visit) Home() string { return v.Path + "/" }

// Docs is the address of the page that shows the interface.
func (v *visit) Docs() string { return v.Prefix + "/docs" }

// Here is the address of this page.
func (v *visit) Here() string { return v.r.URL.RequestURI() }

// Token is what every form repeats.
func (v *visit) Token() string { return v.session.Token }

// NewKey is an idempotency key for a form.
func (v *visit) NewKey() string { return uuid.NewString() }

// Me is who has signed in.
func (v *visit) Me() any { return v.me }

// Has reports whether the user has a right for any target, so that the console shows the pages for it.
func (v *visit) Has(right string) bool { return v.can.Has(auth.Right(right)) }

// May reports whether the user has a right to all that is said of the target: a workflow, an id, a transition, "" for what is not said.
func (v *visit) May(right, workflow, instance, transition string) bool {
	t := auth.Target{Workflow: workflow, Transition: transition}
	t.Instance, _ = uuid.Parse(instance)
	return v.can.May(auth.Right(right), t)
}
