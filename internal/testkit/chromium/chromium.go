// Package chromium runs a headless Chromium for tests of pages, with chromedp.
package chromium

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

// Env names the environment variable with the path of the browser. It defaults to the first browser that chromedp finds.
const Env = "PAWL_CHROMIUM"

// Start runs a Chromium until the test ends. It skips the test if no browser is found.
func Start(t testing.TB) *Browser {
	t.Helper()
	home := t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("lang", "en"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "LANGUAGE=en"))
	named := os.Getenv(Env)
	if named != "" {
		options = append(options, chromedp.ExecPath(named))
	}
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, _ = chromedp.NewContext(ctx, chromedp.WithNewWindow(false))
	if err := chromedp.Do(ctx); errors.Is(err, exec.ErrNotFound) && named == "" {
		t.Skipf("no Chromium found: install it (package chromium), or name it in %s, to test pages in it", Env)
	} else if err != nil {
		t.Fatal(err)
	}
	return &Browser{t, ctx}
}

// Browser is a running Chromium.
type Browser struct {
	t   testing.TB
	ctx context.Context
}

// Page is a tab. Its methods are for one goroutine, and end the test when they fail.
type Page struct {
	Browser
	mu   sync.Mutex
	seen Seen
}

// Seen holds what a page has done so far.
type Seen struct {
	Requests   []string // method, blank and URL of each request
	WebSockets []string // URLs
	Messages   []string // sent over the WebSockets
	Problems   []string // uncaught exceptions, logged errors and violations of the page's policy (CSP)
}

// Seen returns what the page has done so far.
func (p *Page) Seen() Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// note records an event. It ignores failed requests, because a test may cut a page off.
func (p *Page) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.seen.Requests = append(p.seen.Requests, e.Request.Method+" "+e.Request.URL)
	case *network.EventWebSocketCreated:
		p.seen.WebSockets = append(p.seen.WebSockets, e.URL)
	case *network.EventWebSocketFrameSent:
		p.seen.Messages = append(p.seen.Messages, string(e.Response.PayloadData))
	case *runtime.EventExceptionThrown:
		p.seen.Problems = append(p.seen.Problems, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			args, err := json.Marshal(e.Args)
			p.seen.Problems = append(p.seen.Problems, fmt.Sprintf("%s %v", args, err))
		}
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork {
			p.seen.Problems = append(p.seen.Problems, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	}
}

// Open opens a URL in a new tab, and waits until it is loaded.
func (b *Browser) Open(url string) *Page {
	b.t.Helper()
	const logViolations = `addEventListener('securitypolicyviolation', (e) =>
		console.error('refused by the policy:', e.violatedDirective, e.blockedURI))`
	p := &Page{Browser: *b}
	p.ctx, _ = chromedp.NewContext(b.ctx, chromedp.WithListener(p.note))
	Call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: logViolations})
	p.Navigate(url)
	return p
}

// Navigate opens another URL in the same tab, and waits until it is loaded.
func (p *Page) Navigate(url string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(url))
}

// Do runs actions of chromedp.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// Call executes a command of the DevTools protocol.
func Call[P, R any](p *Page, command cdp.Command[P, R], params P) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, command, params); err != nil {
		p.t.Fatalf("%s: %v", command.Method, err)
	}
}

// Eval returns the value of a JavaScript expression, or of its promise. It tries again if another document replaces the page's meanwhile.
func Eval[T any](p *Page, expression string) (value T) {
	p.t.Helper()
	var err error
	await.Eventually(p.t, expression, func() bool {
		value, err = chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
		return err == nil || !strings.Contains(err.Error(), "Inspected target navigated or closed")
	})
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// Text returns the visible text at a selector, or "".
func (p *Page) Text(selector string) string {
	p.t.Helper()
	const text = `(e => e?.checkVisibility() ? e.innerText : '')(document.querySelector(%q))`
	return strings.TrimSpace(Eval[string](p, fmt.Sprintf(text, selector)))
}

// WaitText waits for a visible text at a selector.
func (p *Page) WaitText(selector, want string) {
	p.t.Helper()
	await.Eventually(p.t, fmt.Sprintf("%s says %q", selector, want), func() bool { return p.Text(selector) == want })
}

// Focus waits until the element at a selector has the focus.
func (p *Page) Focus(selector string) {
	p.t.Helper()
	const focused = `(e => { e?.focus(); return e !== null && document.activeElement === e })(document.querySelector(%q))`
	await.Eventually(p.t, selector+" has the focus", func() bool { return Eval[bool](p, fmt.Sprintf(focused, selector)) })
}

// Click waits until the element at a selector is visible, enabled, uncovered and at rest, and clicks into its middle, the given number of
// times.
func (p *Page) Click(selector string, times int) {
	p.t.Helper()
	const middle = `((e) => {
		if (!e?.checkVisibility() || e.matches(':disabled')) return [];
		e.scrollIntoView({block: 'center', behavior: 'instant'});
		const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
		return e.contains(document.elementFromPoint(x, y)) ? [x, y] : [];
	})(document.querySelector(%q))`
	var at []float64
	await.Eventually(p.t, selector+" can be clicked and does not move", func() bool {
		before := at
		at = Eval[[]float64](p, fmt.Sprintf(middle, selector))
		return len(at) == 2 && slices.Equal(at, before)
	})
	for n := range times {
		p.Do(chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(n+1)))
	}
}

// Type presses the keys of a text, of which "\t" is Tab and "\r" is Enter.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.Do(chromedp.KeyEvent(text))
}

// Resize sets the size of the window in CSS pixels, and the color scheme, "light" or "dark".
func (p *Page) Resize(width, height int, scheme string) {
	p.t.Helper()
	p.Do(chromedp.EmulateViewport(int64(width), int64(height)))
	Call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// Picture writes the whole page to a file, as PNG.
func (p *Page) Picture(file string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err = cmp.Or(err, os.WriteFile(file, png, 0o600)); err != nil {
		p.t.Fatal(err)
	}
}
