package console_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	devtools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
)

// Ten tabs of a browser, which has six connections to a node, are ten pages. The one that is looked at follows, and another one
// shows what there is as soon as it is looked at.
func TestTenTabsAreTenPages(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newStand(t)
	id := s.filed("A-1", 10)
	browser := chromium.Start(t)
	first := s.signIn(browser, s.URL(), s.key("boss", everything), "/instances/"+id.String())
	first.WaitText("#live", "live")
	var last *chromium.Page
	for range 9 {
		last = browser.Open(s.URL() + "/console/instances/" + id.String())
		last.WaitText("#live", "live")
	}
	s.do(id, "note", "ann", `{"note":"to the last"}`)
	last.WaitText("#v2 q", "to the last")
	chromium.Call(first, devtools.BringToFront, cdp.Empty{})
	first.WaitText("#v2 q", "to the last")
	first.WaitText("#live", "live")
	s.do(id, "note", "ann", `{"note":"to the first"}`)
	first.WaitText("#v3 q", "to the first")
	wantInOrder(t, s.URL(), first)
}

// Pages are not shown again after signing out: the back button leads to the sign-in page.
func TestTheWayBackAfterASignOutLeadsToNothing(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newStand(t)
	id := s.filed("A-1", 10)
	p := s.open(s.URL(), s.key("boss", everything), "/instances/"+id.String())
	p.Click("header .who button", 1)
	p.WaitText("h1", "Sign in to Pawl")
	chromium.Eval[any](p, `history.back()`)
	await.Eventually(t, "the page is asked for again", func() bool { // and not shown as it was
		return chromium.Eval[bool](p, `document.readyState === 'complete' && location.search.includes('next=')`)
	})
	p.WaitText("h1", "Sign in to Pawl")
}

// Without the script everything works but that pages follow, and nothing is there that does nothing.
func TestTheConsoleIsUsedWithoutScripts(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newStand(t)
	id := s.filed("A-1", 10)
	p := chromium.Start(t).Open(s.URL() + "/console/sign-in")
	chromium.Call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.Navigate(s.URL() + "/console/instances/" + id.String() + "/do/note")
	p.Focus("[name=credential]")
	p.Type(s.key("boss", everything))
	p.Type("\r")
	p.WaitText("h1", "note")
	p.Focus("#f-p\\/note")
	p.Type("by hand")
	p.Click("button[value=submit]", 2)
	p.WaitText("#v2 q", "by hand")
	p.Navigate(s.URL() + "/console/log")
	assert.Equal(t, "", p.Text("[data-copy]"), "there is a button")
	p.Navigate(s.URL() + "/console/instances?workflow=claim")
	p.Click(`[name=id]`, 1)
	p.Click(`form[action$="/bulk"] button`, 1)
	p.WaitText("h1", "note, of several instances")
}

// Times are in UTC, wherever the browser is.
func TestTimesAreInUTCWhereverTheBrowserIs(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newStand(t)
	id := s.filed("A-1", 10)
	view, err := s.Engine().Read().View(t.Context(), "", id)
	require.NoError(t, err)
	p := s.open(s.URL(), s.key("boss", everything), "/instances/"+id.String())
	for _, zone := range []string{"America/New_York", "Asia/Kolkata"} {
		chromium.Call(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
		p.Do(chromedp.Reload())
		p.WaitText("#stands time", view.UpdatedAt.UTC().Format("2006-01-02 15:04:05"))
		p.Navigate(s.URL() + "/console/instances?workflow=claim&created_after=" + view.CreatedAt.UTC().Format("2006-01-02T15:04:05"))
		p.WaitText("#list tbody th", "A-1")
		p.Click("form.filter button", 1) // as the browser's own fields have it
		p.WaitText("#list tbody th", "A-1")
		p.Navigate(s.URL() + "/console/instances/" + id.String())
	}
}

// A dead letter is delivered again, and a key revoked, without a mouse.
func TestADeadLetterIsRedrivenWithoutAMouse(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	r := &receiver{}
	s := newStand(t, func(c *service.Config) { c.Sinks = []relay.Sink{{Name: "books", To: r}} })
	s.filed("A-1", 10)
	s.awaitDead()
	r.open.Store(true)
	robot := s.key("robot", "read")
	p := s.open(s.URL(), s.key("olga", everything), "/")
	follow := func(link, heading string) {
		tabTo(t, p, link)
		p.Type("\r")
		p.WaitText("h1", heading)
	}
	follow("Sinks", "Sinks")
	follow("books", "books")
	follow("Deliver again", "Deliver dead letters again")
	tabTo(t, p, "reason")
	p.Type("the address is mended")
	follow("Deliver again", "books")
	await.Eventually(t, "it is delivered", func() bool { return r.got.Load() == 1 })
	p.Navigate(s.URL() + "/console/sinks/books?status=redriven")
	assert.Contains(t, p.Text("main"), "the address is mended", "the page has no receipt")
	follow("Keys", "API keys")
	for range 60 {
		p.Type("\t")
		if strings.HasSuffix(chromium.Eval[string](p, `document.activeElement.href ?? ''`), "/keys/"+strings.Split(robot, "_")[1]+"/revoke") {
			break
		}
	}
	p.Type("\r")
	p.WaitText("h1", "Revoke the key")
	follow("Revoke", "API keys")
	newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {robot}}).want(401)
	wantInOrder(t, s.URL(), p)
}

// A form whose button is pressed again before it is answered is sent once: the text of a key, which is shown once, is not lost.
func TestADoubleClickSendsAFormOnce(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newStand(t)
	p := s.open(s.URL(), s.key("boss", everything), "/keys/new")
	p.Focus("#f-name")
	p.Type("till")
	const twice = `(() => {
		let sent = 0;
		addEventListener('submit', (event) => { if (!event.defaultPrevented) sent++; });
		const button = document.querySelector('form.card button');
		button.click();
		button.click();
		return sent;
	})()`
	assert.Equal(t, 1, chromium.Eval[int](p, twice), "the form is sent times")
	await.Eventually(t, "its text is shown", func() bool { return strings.HasPrefix(p.Text("#secret"), "pawl_") })
	s.visitor(p.Text("#secret")).get("/console/me").want(200)
	wantInOrder(t, s.URL(), p)
}
