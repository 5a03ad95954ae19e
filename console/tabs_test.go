package console_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// After signing out, the back button leads to the sign-in page.
func TestBackButtonAfterSignOut(t *testing.T) {
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
func TestConsoleWithoutScripts(t *testing.T) {
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
func TestTimesAreInUTC(t *testing.T) {
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

// A form whose button is pressed again before it is answered is sent once: the text of a key, which is shown once, is not lost.
func TestDoubleClickSendsFormOnce(t *testing.T) {
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
