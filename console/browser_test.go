package console_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// open signs somebody in with a browser, and opens a page.
func (s *stand) open(origin, credential, path string) *chromium.Page {
	s.t.Helper()
	return s.signIn(chromium.Start(s.t), origin, credential, path)
}

// signIn is open, with a browser that is there.
func (s *stand) signIn(b *chromium.Browser, origin, credential, path string) *chromium.Page {
	s.t.Helper()
	p := b.Open(origin + "/console" + path)
	p.Focus("[name=credential]")
	p.Type(credential)
	p.Type("\r")
	await.Eventually(s.t, "somebody is signed in", func() bool {
		return chromium.Eval[string](p, `document.readyState === 'complete' ? location.pathname + location.search : ''`) == "/console"+path
	})
	return p
}

// wantInOrder fails the test where a page has done what it should not: an exception, something that its policy refuses, a request
// to anywhere else.
func wantInOrder(t *testing.T, origin string, p *chromium.Page) {
	t.Helper()
	seen := p.Seen()
	assert.Empty(t, seen.Problems)
	for _, r := range seen.Requests {
		// the browser's own icons
		_, address, _ := strings.Cut(r, " ")
		assert.True(t, strings.HasPrefix(address, origin+"/") || strings.HasPrefix(address, "data:"), r)
	}
}

const (
	// nameless are the fields and buttons that have no name.
	nameless = `Array.from(document.querySelectorAll('input:not([type=hidden]), select, textarea, button, a')).filter((e) =>
		!e.labels?.length && !e.textContent.trim() && !e.getAttribute('aria-label')).map((e) => e.outerHTML)`
	// tooWide are the elements that reach out of the window.
	tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] : Array.from(document.querySelectorAll('main *, header *, footer *'))
		.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.parentElement.closest('.wide, pre'))
		.map((e) => e.outerHTML.slice(0, 200))`
)

// All pages fit on all screens, all elements have a name, and axe-core (from npm) finds no violation.
func TestPages_ScreensAndAccessibility(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	axe := axeCore(t)
	s := newFullStand(t)
	p := s.open(s.URL(), s.key("boss", everything, "boss"), "/")
	const run = `axe.run(document, {resultTypes: ['violations']}).then((r) =>
		r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html.slice(0, 200) + ' ' + n.failureSummary)))`
	for i, path := range append(s.addresses(), "/sign-in") {
		p.Navigate(s.URL() + "/console" + path)
		for _, width := range []int{360, 768, 1280} {
			p.Resize(width, 900, []string{"light", "dark"}[i%2])
			assert.Empty(t, chromium.Eval[[]string](p, tooWide), path, width)
		}
		assert.Empty(t, chromium.Eval[[]string](p, nameless), path)
		if axe != "" {
			chromium.Eval[any](p, axe+"; undefined")
			assert.Empty(t, chromium.Eval[[]string](p, run), path)
		}
	}
	wantInOrder(t, s.URL(), p)
}

// axeCore returns the text of axe-core, or "" if npm cannot fetch it.
func axeCore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--no-save", "--no-audit", "--no-fund", "--ignore-scripts",
		"--loglevel=error", "--fetch-retries=0", "axe-core@4.10.3")
	if out, err := c.CombinedOutput(); err != nil {
		t.Logf("pages are not checked with axe-core: npm: %v\n%s", err, out)
		return ""
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	return string(text)
}

func TestPageShowsOtherNodesCommits(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	other := s.node(func(c *service.Config) { c.Auth.Keys = true })
	id := s.filed("A-1", 10)
	p := s.open(other.URL(), s.key("boss", everything), "/instances/"+id.String())
	p.WaitText("#live", "live")
	p.Click("#v1 summary", 1)
	s.do(id, "note", "ann", `{"note":"<b>seen</b>"}`)
	p.WaitText("#v2 q", "<b>seen</b>")
	s.do(id, "approve", "bob", `{}`)
	p.WaitText("#stands .state", "approved")
	assert.True(t, chromium.Eval[bool](p, `document.querySelector('#d1').open`), "what was opened is closed")
	s.do(id, "call", "bob", `{"note":""}`)
	answer := await.Receive(t, "the bank is asked", s.bank.asked)
	p.WaitText("#stands .state", "calling")
	awaitPage(t, p, "#why", "attempt 1 is running", true)
	answer <- errBank // which is no transition: the command's own stream tells
	awaitPage(t, p, "#why", "attempt 1 has failed", true)
	awaitPage(t, p, "#why", errBank.Error(), true)
	wantInOrder(t, other.URL(), p)
}

func TestListLogAndCommandFollow(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	p := s.open(s.URL(), s.key("boss", everything), "/instances?workflow=claim")
	p.WaitText("#live", "live")
	id := s.filed("A-1", 10)
	p.WaitText("#list tbody th", "A-1")
	p.Navigate(s.URL() + "/console/log")
	p.WaitText("#live", "live")
	s.do(id, "approve", "bob", `{}`)
	awaitPage(t, p, "#events", "claim.approve: filed → approved", true)
	p.Navigate(s.URL() + "/console/")
	p.WaitText("#live", "live")
	s.filed("A-2", 10)
	awaitPage(t, p, "#recent", "A-2", true)
	s.do(id, "call", "bob", `{"note":""}`)
	answer := await.Receive(t, "the bank is asked", s.bank.asked)
	p.Navigate(s.URL() + "/console/commands?" + queryOf(s.flight(id)))
	p.WaitText("#command b", "processing")
	answer <- nil
	p.WaitText("#command b", "succeeded")
	wantInOrder(t, s.URL(), p)
}

// An operator settles a command without a mouse, and a transition is submitted, tried first.
func TestKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	id := s.stuck("A-1")
	p := s.open(s.URL(), s.key("olga", everything), "/stuck")
	tabTo(t, p, "It has happened")
	p.Type("\r")
	p.WaitText("h1", "Confirm the effect")
	tabTo(t, p, "result")
	p.Type("7")
	chromium.Eval[any](p, `document.activeElement.value = '7'`) // in place of {}
	tabTo(t, p, "reason")
	p.Type("the bank's statement has it")
	tabTo(t, p, "It has happened")
	p.Type("\r")
	p.WaitText("#stands .state", "paid")
	awaitPage(t, p, "#timeline", "the bank's statement has it", true)
	assert.Equal(t, "/console/instances/"+id.String(), chromium.Eval[string](p, `location.pathname`))

	other := s.filed("A-2", 10)
	p.Navigate(s.URL() + "/console/instances/" + other.String())
	tabTo(t, p, "note")
	p.Type("\r")
	p.WaitText("h1", "note")
	tabTo(t, p, "p/note")
	p.Type(`line "one" </textarea>`)
	tabTo(t, p, "Try it, without writing")
	p.Type("\r")
	p.WaitText("main .good", "Nothing was written. It would go to the state filed, version 2.")
	tabTo(t, p, "Submit")
	p.Type("\r")
	p.WaitText("#v2 q", `line "one" </textarea>`)
	tabTo(t, p, "q")
	p.Type("A-1")
	p.Type("\r")
	p.WaitText("h1", "A-1")
	wantInOrder(t, s.URL(), p)
}

// tabTo presses the tabulator until something has the focus: a field by its name, a button or a link by its text.
func tabTo(t *testing.T, p *chromium.Page, what string) {
	t.Helper()
	const focused = `((e) => e?.name && e.name !== 'do' ? e.name : e?.textContent.trim() ?? '')(document.activeElement)`
	for range 60 {
		p.Type("\t")
		if chromium.Eval[string](p, focused) == what {
			return
		}
	}
	t.Fatalf("the keyboard does not lead to %q", what)
}
