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
	"path"
	"strings"
	"time"

	"github.com/google/uuid"

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
