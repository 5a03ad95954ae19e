package service

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
)

// A browser shows the page of this service's document under its policy, and without requests to other hosts.
func TestDocsPageShowsTheDocument(t *testing.T) {
	t.Parallel()
	s := service(t)
	p := chromium.Start(t).Open(s.URL() + "/docs")
	shows := func(want string) {
		t.Helper()
		await.Eventually(t, "the page shows "+want, func() bool {
			return strings.Contains(chromium.Eval[string](p, `document.querySelector('rapi-doc')?.shadowRoot?.textContent ?? ''`), want)
		})
	}
	// RapiDoc can build the tables of all operations at once, which blocks the page for seconds. It is to build those that are shown.
	const elements = `(() => {
		const count = (root) => [...root.querySelectorAll('*')].reduce((n, e) => n + 1 + (e.shadowRoot ? count(e.shadowRoot) : 0), 0);
		return count(document);
	})()`
	shows("/v1/workflows/order/place")
	chromium.Eval[bool](p, `!!(location.hash = '#post-/v1/workflows/order/place')`)
	shows("The customer orders what is in the cart.")
	n := chromium.Eval[int](p, elements)
	assert.Truef(t, n <= 5000, "the page has %d elements", n)
	seen := p.Seen()
	for _, problem := range seen.Problems {
		t.Errorf("the page: %s", problem)
	}
	for _, r := range seen.Requests {
		_, url, _ := strings.Cut(r, " ")
		assert.Falsef(t, !strings.HasPrefix(url, s.URL()+"/") && !strings.HasPrefix(url, "data:"), "the page asks elsewhere: %s", r)
	}
}
