package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	devtools "github.com/chromedp/cdproto/page"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// An unchanged page is answered with 304. Pages that no stream reports are polled.
func TestUnchangedPageIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s := newFullStand(t)
	s.stuck("A-1")
	s.awaitDead()
	v := s.visitor(s.key("boss", everything))
	for _, path := range []string{"/stuck", "/sinks", "/sinks/books?status=waiting", "/messages", "/keys", "/migrations", "/commands",
		"/paused", "/workflows",
		"/workflows/claim", "/"} {
		v.get("/console"+path).want(200, ` data-poll="3000"`, " data-part")
		await.Eventually(t, path+" is not sent again", func() bool { // but where a lease or a last use has been noted between
			again := v.get("/console"+path, "If-None-Match", "W/"+v.get("/console"+path).header.Get("ETag")) // as a proxy that compresses has it
			return again.status == http.StatusNotModified && again.text == ""
		})
	}
	tag := v.get("/console/stuck").header.Get("ETag")
	s.stuck("A-2")
	v.get("/console/stuck", "If-None-Match", tag).want(200, "A-2")
	for _, path := range []string{"/keys/new", "/me", "/nowhere", "/instances/" + uuid.NewString()} {
		assert.NotContainsf(t, v.get("/console"+path).text, "data-poll", "%s follows", path)
	}
}

// stays has a page remember that it was not loaded again, which wantStayed finds out.
func stays(p *chromium.Page) { chromium.Eval[any](p, `window.stays = true`) }

func wantStayed(t *testing.T, p *chromium.Page) {
	t.Helper()
	assert.True(t, chromium.Eval[bool](p, `window.stays === true`), "the page was loaded again")
}

// awaitPage waits until a part of a page has a text, or has it no more.
func awaitPage(t *testing.T, p *chromium.Page, selector, text string, has bool) {
	t.Helper()
	await.Eventually(t, selector+" and "+text, func() bool { return strings.Contains(p.Text(selector), text) == has })
}

// The page of stuck commands follows other nodes, without disturbing a user who types or selects something.
func TestStuckPageFollows(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newStand(t)
	other := s.node(func(c *service.Config) { c.Auth.Keys = true })
	olga := s.key("olga", identities["operator"])
	first := s.stuck("A-1")
	p := s.open(other.URL(), olga, "/stuck")
	p.WaitText("#live", "live")
	stays(p)
	p.Focus("#find")
	p.Type("half a num")
	second := s.stuck("A-2")
	awaitPage(t, p, "#list", "A-2", true)
	p.WaitText("#news", "2 commands wait for an operator")
	assert.True(t, chromium.Eval[bool](p, `document.activeElement.id === 'find' && document.activeElement.value === 'half a num'`),
		"the field was disturbed")
	p.Focus(`#list a[href*="/stuck/retry"]`)
	there := s.visitor(olga)
	settle := func(action string, id uuid.UUID) {
		there.fill("/console/stuck/"+action, append(s.flight(id), "instance", id.String(), "result", "7", "reason", "seen")...).want(303)
	}
	ref := queryOf(s.flight(second))
	settle("resolve", first)
	awaitPage(t, p, "#list", "A-1", false)
	awaitPage(t, p, "#list", "A-2", true)
	wantStayed(t, p)

	// On the form, of which somebody else does not know.
	p.Navigate(other.URL() + "/console/stuck/resolve?" + ref)
	stays(p)
	p.Focus("#f-reason")
	p.Type("the bank's statement has")
	settle("abandon", second)
	awaitPage(t, p, "#facts", "It does not wait any more", true)
	p.Type(" it")
	assert.Equal(t, "the bank's statement has it", chromium.Eval[string](p, `document.activeElement.value`), "the reason")
	wantStayed(t, p)
	p.Navigate(other.URL() + "/console/stuck")
	awaitPage(t, p, "#list", "There are none.", true)
	stays(p)
	chromium.Eval[any](p, `getSelection().selectAllChildren(document.querySelector('#list'))`)
	s.stuck("A-3")
	p.WaitText("#live", "changed; shown when you have finished where you are")
	assert.False(t, chromium.Eval[bool](p, `getSelection().isCollapsed`))
	chromium.Eval[any](p, `getSelection().removeAllRanges()`)
	awaitPage(t, p, "#list", "A-3", true)
	wantStayed(t, p)
	wantInOrder(t, other.URL(), p)
}

// A hidden tab sends no requests. In a visible one, the position and the selection stay.
func TestHiddenTabSendsNoRequests(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newStand(t)
	for range 3 {
		s.stuck("A-" + uuid.NewString()[:8])
	}
	browser := chromium.Start(t)
	hidden := s.signIn(browser, s.URL(), s.key("boss", everything), "/stuck")
	hidden.WaitText("#live", "live")
	p := browser.Open(s.URL() + "/console/stuck")
	p.WaitText("#live", "live")
	await.Eventually(t, "the first tab is hidden", func() bool { return chromium.Eval[bool](hidden, `document.hidden`) })
	hidden.WaitText("#live", "")
	before := len(hidden.Seen().Requests)
	p.Resize(360, 400, "light")
	chromium.Eval[any](p, `document.querySelector('#list li:nth-child(3) a').scrollIntoView({block: 'start'})`)
	const top = `document.querySelector('#list li:last-child a').getBoundingClientRect().top`
	was := chromium.Eval[float64](p, top)
	id := uuid.MustParse(path.Base(chromium.Eval[string](p, `document.querySelector('#list li a').pathname`)))
	s.visitor(s.key("olga", identities["operator"])).fill("/console/stuck/resolve",
		append(s.flight(id), "instance", id.String(), "result", "7", "reason", "seen")...).want(303)
	await.Eventually(t, "the tab in front has it", func() bool {
		return chromium.Eval[int](p, `document.querySelectorAll('#list li').length`) == 2
	})
	assert.InDelta(t, was, chromium.Eval[float64](p, top), 2)
	assert.Len(t, hidden.Seen().Requests, before)
	chromium.Call(hidden, devtools.BringToFront, cdp.Empty{})
	await.Eventually(t, "the other one has it, too", func() bool {
		return chromium.Eval[int](hidden, `document.querySelectorAll('#list li').length`) == 2
	})

	chosenID := s.filed("B-1", 10)
	p.Navigate(s.URL() + "/console/instances?workflow=claim&order=updated")
	chromium.Call(p, devtools.BringToFront, cdp.Empty{})
	p.WaitText("#live", "live")
	chosen := `document.querySelector('[name=id][value="` + chosenID.String() + `"]')`
	chromium.Eval[any](p, chosen+`.checked = true; `+chosen+`.focus(); document.querySelector('[name=action]').value = 'pause'`)
	s.filed("A-9", 10)
	awaitPage(t, p, "#list", "A-9", true)
	assert.True(t, chromium.Eval[bool](p, chosen+`.checked && document.activeElement === `+chosen+
		` && document.querySelector('[name=action]').value === 'pause'`), "what was chosen is not chosen any more")
	wantInOrder(t, s.URL(), p)
}

// A proxy that responds for a node closes the event stream permanently, so the browser does not reconnect by itself.
func TestPageOpensClosedStreamAgain(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newStand(t)
	node, err := url.Parse(s.URL())
	require.NoError(t, err)
	var away atomic.Bool
	var refused atomic.Int64
	opened := make(chan context.CancelFunc, 100)
	pass := httputil.NewSingleHostReverseProxy(node)
	pass.FlushInterval = -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream := r.Header.Get("Accept") == "text/event-stream"
		if away.Load() {
			if stream {
				refused.Add(1)
			}
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		ctx, cut := context.WithCancel(r.Context())
		defer cut()
		if stream {
			opened <- cut
		}
		pass.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	p := s.open(front.URL, s.key("olga", everything), "/instances?workflow=claim")
	p.WaitText("#live", "live")
	stays(p)
	away.Store(true)
	await.Receive(t, "the stream", opened)()
	await.Eventually(t, "the stream is refused", func() bool { return refused.Load() > 0 })
	p.WaitText("#live", "connecting again")
	away.Store(false)
	p.WaitText("#live", "live")
	s.filed("A-1", 10)
	awaitPage(t, p, "#list", "A-1", true)
	wantStayed(t, p)
}
