package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
)

// wantInOrder fails the test where the page has done what it should not: an exception, something that its policy
// refuses, a request to anywhere else.
func wantInOrder(t *testing.T, s *stand, p *chromium.Page) {
	t.Helper()
	seen := p.Seen()
	for _, problem := range seen.Problems {
		t.Errorf("the page: %s", problem)
	}
	for _, r := range seen.Requests {
		_, url, _ := strings.Cut(r, " ")
		assert.Truef(t, strings.HasPrefix(url, s.origin()+"/"), "the page asks elsewhere: %s", r)
	}
	for _, url := range seen.WebSockets {
		assert.Equal(t, "ws"+strings.TrimPrefix(s.origin(), "http")+"/v1/stream", url, "the page opens")
	}
}

// history is what the page shows of an order.
func history(p *chromium.Page) []string {
	return chromium.Eval[[]string](p, `Array.from(document.querySelectorAll('#history strong'), (e) => e.textContent)`)
}

// offered is what can be done with the order.
func offered(p *chromium.Page) []string {
	return chromium.Eval[[]string](p, `Array.from(document.querySelectorAll('section form:has(:enabled)'), (e) => e.id)`)
}

func wantHistory(t *testing.T, p *chromium.Page, want ...string) {
	t.Helper()
	await.Eventually(t, fmt.Sprintf("the page shows %q", want), func() bool { return slices.Equal(history(p), want) })
}

// picture saves a screenshot in the folder named by PAWL_PICTURES.
func picture(p *chromium.Page, name string) {
	if dir := os.Getenv("PAWL_PICTURES"); dir != "" {
		p.Picture(filepath.Join(dir, name+".png"))
	}
}

// count is how many of these begin so.
func count(all []string, begin string) (n int) {
	for _, one := range all {
		if strings.HasPrefix(one, begin) {
			n++
		}
	}
	return n
}

// A customer clicks twice, and has ordered once; what becomes of the order is on the screen when it happens.
func TestTwoClicksAreOneOrderThatIsFollowedLive(t *testing.T) {
	t.Parallel()
	s := newStand(t, 0)
	p := chromium.Start(t).Open(s.origin() + "/shop/")
	p.Click("#order button", 2)
	p.WaitText("#live", "live")
	wantHistory(t, p, "place: placed")
	await.Eventually(t, "both clicks are sent", func() bool { return count(p.Seen().Requests, "POST "+s.origin()+"/shop/orders") == 2 })
	number := s.onlyOrder(t)

	s.submit(t, number, "pay", `{"method":"card"}`)
	p.WaitText("#state", "paid")
	wantHistory(t, p, "place: placed", "pay.accepted: paying", "pay: paid")
	await.Eventually(t, "it cannot be paid or cancelled any more", func() bool { return len(offered(p)) == 0 })
	assert.Equal(t, 1, count(p.Seen().Requests, "GET "+s.origin()+"/shop/page.js"), "the page was loaded times")

	// A screen that is behind asks for it all the same.
	chromium.Eval[any](p, `document.querySelector('#cancel fieldset').disabled = false, document.querySelector('#cancel').requestSubmit()`)
	await.Eventually(t, "it is refused", func() bool {
		return strings.HasPrefix(p.Text("#problem"), `"cancel" is not possible in state "paid"`)
	})
	picture(p, "refused")

	// Loaded again, it is the same order.
	p.Do(chromedp.Reload())
	p.WaitText("#live", "live")
	wantHistory(t, p, "place: placed", "pay.accepted: paying", "pay: paid")
	s.onlyOrder(t)
	wantInOrder(t, s, p)
}

func TestCustomerPaysAndCancelsWithATicket(t *testing.T) {
	t.Parallel()
	s := newStand(t, 0)
	p := chromium.Start(t).Open(s.origin() + "/shop/")
	chromium.Eval[any](p, `document.querySelector('[name=item]').value = 'desk'`)
	p.Click("#order button", 1)
	p.WaitText("#total", "1299.00 EUR")
	chromium.Eval[any](p, `document.querySelector('[name=method]').value = 'invoice'`)
	p.Focus("#pay button")
	chromium.Eval[any](p, `(b => { b.click(); b.click() })(document.querySelector('#pay button'))`)
	p.WaitText("#state", "payment failed")
	assert.Contains(t, p.Text("#why"), "no invoice above", "the customer reads")
	picture(p, "failed")
	assert.Equal(t, 3, len(s.history(t, s.onlyOrder(t))), "two clicks at once pay once")

	// What somebody writes is text, whatever it looks like.
	const reason = `<img src="/x" onerror="alert(1)"><b>no</b>`
	chromium.Eval[any](p, fmt.Sprintf(`document.querySelector('[name=reason]').value = %q`, reason))
	p.Click("#cancel button", 1)
	p.WaitText("#state", "cancelled")
	p.WaitText("#history li:last-child q", reason)
	number := s.onlyOrder(t)
	customer, _, _ := strings.Cut(number, ":")
	all := s.history(t, number)
	if last := all[len(all)-1]; last.Actor != customer || !strings.HasPrefix(last.Proof, "ticket key ") {
		t.Errorf("it was cancelled by %q, proved by %q", last.Actor, last.Proof)
	}
	wantInOrder(t, s, p)
}

// The network is cut while the order continues. The page resumes at its position, and shows each transition once.
func TestPageResumesAfterItWasCutOff(t *testing.T) {
	t.Parallel()
	s := newStand(t, 0)
	p := chromium.Start(t).Open(s.origin() + "/shop/")
	p.Click("#order button", 1)
	p.WaitText("#live", "live")
	number := s.onlyOrder(t)
	s.cable.Cut()
	p.WaitText("#live", "connecting again")
	s.submit(t, number, "pay", `{"method":"card"}`)
	s.submit(t, number, "ship", `{"carrier":"Post","tracking":"0034"}`)
	s.cable.Mend()
	p.WaitText("#live", "live")
	wantHistory(t, p, "place: placed", "pay.accepted: paying", "pay: paid", "ship: shipped")
	messages := p.Seen().Messages
	assert.Contains(t, messages[len(messages)-1], fmt.Sprintf(`"after":%d`, s.history(t, number)[0].Position), "it resumes with")
	wantInOrder(t, s, p)
}

// The tickets expire within seconds, and the page renews them on the same connection.
func TestPageRenewsItsTicketOnTheOpenConnection(t *testing.T) {
	t.Parallel()
	s := newStand(t, 6*time.Second)
	p := chromium.Start(t).Open(s.origin() + "/shop/")
	p.Click("#order button", 1)
	p.WaitText("#live", "live")
	number := s.onlyOrder(t)
	// A busy machine may be late for one of them: then the page connects again, and renews that one.
	const fresh = `{"op":"authenticate"`
	await.Eventually(t, "fresh tickets are presented", func() bool { return count(p.Seen().Messages, fresh) >= 3 })
	p.WaitText("#live", "live")
	s.submit(t, number, "pay", `{"method":"card"}`)
	p.WaitText("#state", "paid")
	seen := p.Seen()
	t.Logf("%d fresh tickets, %d connections", count(seen.Messages, fresh), len(seen.WebSockets))
	wantInOrder(t, s, p)
}

// Everything can be reached with the keyboard, has a name, and fits on every screen.
func TestPageIsUsableOnEveryScreen(t *testing.T) {
	t.Parallel()
	s := newStand(t, 0)
	p := chromium.Start(t).Open(s.origin() + "/shop/")
	fits := func(name string) {
		t.Helper()
		for _, width := range []int{360, 768, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				p.Resize(width, 900, scheme)
				over := chromium.Eval[int](p, `document.documentElement.scrollWidth - innerWidth`)
				assert.Truef(t, over <= 0, "%s, %d pixels wide: %d pixels are cut", name, width, over)
				picture(p, fmt.Sprintf("%s-%d-%s", name, width, scheme))
			}
		}
	}
	fits("form")
	const nameless = `Array.from(document.querySelectorAll('input, select')).filter((e) => !e.labels.length).map((e) => e.name)`
	names := chromium.Eval[[]string](p, nameless)
	assert.Empty(t, names, "these have no label")
	const focused = `document.activeElement.name || document.activeElement.textContent`
	for _, want := range []string{"item", "quantity", "Place the order"} {
		p.Type("\t")
		assert.Equal(t, want, chromium.Eval[string](p, focused), "the keyboard leads to")
	}
	p.Type("\r")
	p.WaitText("#live", "live")
	await.Eventually(t, "it can be paid and cancelled", func() bool { return len(offered(p)) == 2 })
	fits("placed")
	s.submit(t, s.onlyOrder(t), "cancel", fmt.Sprintf(`{"reason":%q}`, strings.Repeat("a-very-long-word-", 20)))
	p.WaitText("#state", "cancelled")
	fits("cancelled")
	wantInOrder(t, s, p)
}
