package chromium

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

type object = map[string]any

// Page is a tab. Its methods are for one goroutine.
type Page struct {
	browser *Browser
	session string

	mu     sync.Mutex
	seen   Seen
	loaded map[string]bool // which loadings of documents have ended
}

// Seen is what a page has done so far.
type Seen struct {
	Requests   []string // method, blank and URL of everything that it has asked for
	WebSockets []string // the URLs of those that it has opened
	Messages   []string // what it has sent over them
	Problems   []string // exceptions that nothing caught, errors that it logs, and what its policy (CSP) has refused
}

// tell has violations of the policy logged.
const tell = `addEventListener('securitypolicyviolation', (e) =>
	console.error('refused by the policy:', e.violatedDirective, e.blockedURI))`

// Open opens a tab with an address, and waits until it is loaded.
func (b *Browser) Open(url string) *Page {
	b.t.Helper()
	var target struct {
		ID string `json:"targetId"`
	}
	b.do("", "Target.createTarget", object{"url": "about:blank"}, &target)
	var attached struct {
		Session string `json:"sessionId"`
	}
	b.do("", "Target.attachToTarget", object{"targetId": target.ID, "flatten": true}, &attached)
	p := &Page{browser: b, session: attached.Session, loaded: map[string]bool{}}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		p.do(domain+".enable", nil, nil)
	}
	p.do("Page.setLifecycleEventsEnabled", object{"enabled": true}, nil)
	p.do("Page.addScriptToEvaluateOnNewDocument", object{"source": tell}, nil)
	p.load(func() { p.do("Page.navigate", object{"url": url}, nil) })
	return p
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.browser.t.Helper()
	p.load(func() { p.do("Page.reload", nil, nil) })
}

// Navigate opens another address in the same tab, and waits until it is loaded.
func (p *Page) Navigate(url string) {
	p.browser.t.Helper()
	p.load(func() { p.do("Page.navigate", object{"url": url}, nil) })
}

// load waits for the end of the loading that begin begins, whatever else is being loaded.
func (p *Page) load(begin func()) {
	p.browser.t.Helper()
	before := p.loading()
	begin()
	await.Eventually(p.browser.t, "the page is loaded", func() bool {
		now := p.loading()
		p.mu.Lock()
		defer p.mu.Unlock()
		return now != before && p.loaded[now]
	})
}

// loading is the browser's name of the loading that the present document comes from.
func (p *Page) loading() string {
	p.browser.t.Helper()
	var tree struct {
		FrameTree struct {
			Frame struct {
				LoaderID string `json:"loaderId"`
			} `json:"frame"`
		} `json:"frameTree"`
	}
	p.do("Page.getFrameTree", nil, &tree)
	return tree.FrameTree.Frame.LoaderID
}

func (p *Page) do(method string, params, result any) {
	p.browser.t.Helper()
	p.browser.do(p.session, method, params, result)
}

// note keeps what an event tells. Of what the network refuses there is nothing: to be cut off is no fault of a page.
func (p *Page) note(method string, params jsontext.Value) {
	var e struct {
		Request struct {
			Method string `json:"method"`
			URL    string `json:"url"`
		} `json:"request"`
		Name     string `json:"name"`
		LoaderID string `json:"loaderId"`
		URL      string `json:"url"`
		Response struct {
			Payload string `json:"payloadData"`
		} `json:"response"`
		Type   string         `json:"type"`
		Args   jsontext.Value `json:"args"`
		Thrown jsontext.Value `json:"exceptionDetails"`
		Entry  struct {
			Source string `json:"source"`
			Text   string `json:"text"`
		} `json:"entry"`
	}
	switch method {
	case "Page.lifecycleEvent", "Network.requestWillBeSent", "Network.webSocketCreated", "Network.webSocketFrameSent",
		"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
	default:
		return
	}
	if err := json.Unmarshal(params, &e); err != nil {
		e.Thrown = jsontext.Value(err.Error())
		method = "Runtime.exceptionThrown"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch method {
	case "Page.lifecycleEvent":
		if e.Name == "load" {
			p.loaded[e.LoaderID] = true
		}
	case "Network.requestWillBeSent":
		p.seen.Requests = append(p.seen.Requests, e.Request.Method+" "+e.Request.URL)
	case "Network.webSocketCreated":
		p.seen.WebSockets = append(p.seen.WebSockets, e.URL)
	case "Network.webSocketFrameSent":
		p.seen.Messages = append(p.seen.Messages, e.Response.Payload)
	case "Runtime.exceptionThrown":
		p.seen.Problems = append(p.seen.Problems, string(e.Thrown))
	case "Runtime.consoleAPICalled":
		if e.Type == "error" {
			p.seen.Problems = append(p.seen.Problems, string(e.Args))
		}
	case "Log.entryAdded":
		if e.Entry.Source != "network" {
			p.seen.Problems = append(p.seen.Problems, e.Entry.Source+": "+e.Entry.Text)
		}
	}
}

// Seen is what the page has done so far.
func (p *Page) Seen() Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Seen{append([]string{}, p.seen.Requests...), append([]string{}, p.seen.WebSockets...),
		append([]string{}, p.seen.Messages...), append([]string{}, p.seen.Problems...)}
}

// Eval is the value of an expression of JavaScript, or what its promise comes to, as JSON has it.
func Eval[T any](p *Page, expression string) (value T) {
	p.browser.t.Helper()
	value, err := evaluate[T](p, expression)
	if err != nil {
		p.browser.t.Fatal(err)
	}
	return value
}

// evaluate is Eval whose error is the browser's.
func evaluate[T any](p *Page, expression string) (value T, err error) {
	p.browser.t.Helper()
	var answer struct {
		Result struct {
			Value jsontext.Value `json:"value"`
		} `json:"result"`
		Thrown jsontext.Value `json:"exceptionDetails"`
	}
	params := object{"expression": expression, "returnByValue": true, "awaitPromise": true}
	if err := p.browser.ask(p.session, "Runtime.evaluate", params, &answer); err != nil {
		return value, err
	}
	if len(answer.Thrown) > 0 {
		p.browser.t.Fatalf("%s: %s", expression, answer.Thrown)
	}
	if len(answer.Result.Value) == 0 {
		return value, nil // undefined
	}
	if err := json.Unmarshal(answer.Result.Value, &value); err != nil {
		p.browser.t.Fatalf("%s is %s: %v", expression, answer.Result.Value, err)
	}
	return value, nil
}

// replaced is what Chromium says where another document has taken the place of one before that has answered.
const replaced = "Inspected target navigated or closed"

// Read is Eval for who asks again until it is so: of an expression that only reads. Between two documents it is nothing.
func Read[T any](p *Page, expression string) T {
	p.browser.t.Helper()
	value, err := evaluate[T](p, expression)
	if err != nil && !strings.Contains(err.Error(), replaced) {
		p.browser.t.Fatal(err)
	}
	return value
}

// Text is what is to be read at a selector; "" where nothing is, or is shown, as between two documents.
func (p *Page) Text(selector string) string {
	p.browser.t.Helper()
	const text = `((e) => e?.checkVisibility() ? e.innerText : '')(document.querySelector(%q))`
	return strings.TrimSpace(Read[string](p, fmt.Sprintf(text, selector)))
}

// WaitText waits until that is to be read at a selector.
func (p *Page) WaitText(selector, want string) {
	p.browser.t.Helper()
	await.Eventually(p.browser.t, fmt.Sprintf("%s says %q", selector, want), func() bool { return p.Text(selector) == want })
}

// Click clicks, so many times in a row, with a mouse in the middle of what is at a selector, when it is shown and enabled.
func (p *Page) Click(selector string, times int) {
	p.browser.t.Helper()
	type point struct{ X, Y float64 }
	where := fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		if (!e?.checkVisibility() || e.matches(':disabled')) return {X: -1, Y: -1};
		e.scrollIntoView({block: 'center', behavior: 'instant'});
		const r = e.getBoundingClientRect();
		return {X: r.x + r.width / 2, Y: r.y + r.height / 2};
	})()`, selector)
	var at point
	await.Eventually(p.browser.t, selector+" can be clicked", func() bool { at = Eval[point](p, where); return at.X >= 0 })
	for n := range times {
		for _, kind := range []string{"mousePressed", "mouseReleased"} {
			p.do("Input.dispatchMouseEvent", object{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": n + 1}, nil)
		}
	}
}

// Press presses a key: "Tab" or "Enter".
func (p *Page) Press(key string) {
	p.browser.t.Helper()
	codes := map[string]struct {
		code int
		text string
	}{"Tab": {9, ""}, "Enter": {13, "\r"}}
	c, known := codes[key]
	if !known {
		p.browser.t.Fatalf("there is no key %q", key)
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := object{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": c.code}
		if kind == "keyDown" && c.text != "" {
			params["text"] = c.text
		}
		p.do("Input.dispatchKeyEvent", params, nil)
	}
}

// Focus gives what is at a selector the focus, when it is shown and enabled.
func (p *Page) Focus(selector string) {
	p.browser.t.Helper()
	const focused = `((e) => { e?.focus(); return e !== null && document.activeElement === e; })(document.querySelector(%q))`
	focus := fmt.Sprintf(focused, selector)
	await.Eventually(p.browser.t, selector+" has the focus", func() bool { return Read[bool](p, focus) })
}

// Type writes a text where the focus is, as a keyboard does.
func (p *Page) Type(text string) {
	p.browser.t.Helper()
	p.do("Input.insertText", object{"text": text}, nil)
}

// Front brings the tab before the others of its window.
func (p *Page) Front() {
	p.browser.t.Helper()
	p.do("Page.bringToFront", nil, nil)
}

// WithoutScripts has the documents that are loaded from now on run none.
func (p *Page) WithoutScripts() {
	p.browser.t.Helper()
	p.do("Emulation.setScriptExecutionDisabled", object{"value": true}, nil)
}

// Timezone has the page be in a time zone.
func (p *Page) Timezone(name string) {
	p.browser.t.Helper()
	p.do("Emulation.setTimezoneOverride", object{"timezoneId": name}, nil)
}

// Resize makes the window so wide and high, in CSS pixels, and light or dark.
func (p *Page) Resize(width, height int, scheme string) {
	p.browser.t.Helper()
	p.do("Emulation.setDeviceMetricsOverride", object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.do("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Picture writes the whole page to a file, as PNG. It is as wide as the window, for the page then has no scroll bar.
func (p *Page) Picture(file string) {
	p.browser.t.Helper()
	var shot struct {
		Data string `json:"data"`
	}
	size := Eval[[2]int](p, `[innerWidth, Math.max(innerHeight, document.documentElement.scrollHeight)]`)
	clip := object{"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
	p.do("Page.captureScreenshot", object{"format": "png", "captureBeyondViewport": true, "clip": clip}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		p.browser.t.Fatal(err)
	}
	if err := os.WriteFile(file, png, 0o600); err != nil {
		p.browser.t.Fatal(err)
	}
}
