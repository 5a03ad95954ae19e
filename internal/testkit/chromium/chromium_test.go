package chromium_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
)

// serve serves a document with a policy that lets its own scripts run, and these.
func serve(t *testing.T, document, script string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'")
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, document)
		case "/page.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, script)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// What looks for faults has to find them.
func TestPageProblems(t *testing.T) {
	t.Parallel()
	const document = `<!doctype html><link rel=stylesheet href="http://elsewhere.example/a.css"><script src="page.js"></script>`
	b := chromium.Start(t)
	for script, want := range map[string]string{
		`throw new Error('thrown')`:            "thrown",
		`Promise.reject(new Error('refused'))`: "refused",
		`console.error('logged')`:              "logged",
		`null`:                                 "style-src-elem",
	} {
		p := b.Open(serve(t, document, script))
		await.Eventually(t, script+" is seen", func() bool {
			return slices.ContainsFunc(p.Seen().Problems, func(problem string) bool { return strings.Contains(problem, want) })
		})
	}
}

func TestAPageIsUsedWithMouseAndKeyboard(t *testing.T) {
	t.Parallel()
	const document = `<!doctype html><title>t</title><button id=b>press me</button><input id=i><p id=said></p><p id=hidden hidden>not shown</p>
		<script src="page.js"></script>`
	origin := serve(t, document, `let n = 0;
		document.querySelector('#b').addEventListener('click', () => { document.querySelector('#said').textContent = ++n; });`)
	p := chromium.Start(t).Open(origin)
	p.Click("#b", 2)
	p.WaitText("#said", "2")
	p.Type("\r")
	p.WaitText("#said", "3")
	p.Do(chromedp.Reload())
	p.WaitText("#said", "")
	p.Type("\t")
	p.Type("\r")
	p.WaitText("#said", "1")
	p.Focus("#i")
	p.Type("änn")
	assert.Equal(t, "änn", chromium.Eval[string](p, `document.querySelector('#i').value`), "typed")
	assert.Equal(t, "", p.Text("#hidden"), "shown")
	p.Resize(360, 640, "dark")
	width := chromium.Eval[int](p, `innerWidth`)
	assert.Truef(t, width == 360 && chromium.Eval[bool](p, `matchMedia('(prefers-color-scheme: dark)').matches`),
		"the window is %d wide, or light", width)
	file := filepath.Join(t.TempDir(), "p.png")
	p.Picture(file)
	png, err := os.ReadFile(file)
	assert.Truef(t, err == nil && strings.HasPrefix(string(png), "\x89PNG"), "%d bytes, %v", len(png), err)
	seen := p.Seen()
	want := []string{"GET " + origin + "/", "GET " + origin + "/page.js", "GET " + origin + "/", "GET " + origin +
		"/page.js"}
	assert.Truef(t, slices.Equal(seen.Requests, want), "it asked for %q", seen.Requests)
	assert.Empty(t, seen.Problems)
}

// Reading a text while another document loads returns an empty text.
func TestATextIsReadWhileDocumentsChange(t *testing.T) {
	t.Parallel()
	const document = `<!doctype html><title>t</title><p id=said>here</p><script src="page.js"></script>`
	one, two := serve(t, document, ``), serve(t, document, ``)
	p := chromium.Start(t).Open(one)
	for n := range 10 {
		chromium.Eval[any](p, `void setTimeout(() => { location.href = '`+[]string{two, one}[n%2]+`'; })`)
		for range 20 {
			text := p.Text("#said")
			require.Falsef(t, text != "here" && text != "", "it says %q", text)
		}
		p.WaitText("#said", "here")
	}
}
