package service

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/await"
	"github.com/pawlhq/pawl/internal/chromium"
)

// A browser shows the page with the document of this service, under its policy and without asking anybody else.
func TestThePageForPeopleShowsTheDocument(t *testing.T) {
	t.Parallel()
	s := service(t)
	p := chromium.Start(t).Open(s.URL() + "/docs")
	await.Eventually(t, "the page shows a transition and a problem", func() bool {
		text := chromium.Eval[string](p, `document.querySelector('rapi-doc')?.shadowRoot?.textContent ?? ''`)
		return strings.Contains(text, "/v1/workflows/order/place") && strings.Contains(text, "The customer orders what is in the cart.")
	})
	seen := p.Seen()
	for _, problem := range seen.Problems {
		t.Errorf("the page: %s", problem)
	}
	for _, r := range seen.Requests {
		if _, url, _ := strings.Cut(r, " "); !strings.HasPrefix(url, s.URL()+"/") && !strings.HasPrefix(url, "data:") {
			t.Errorf("the page asks elsewhere: %s", r)
		}
	}
}
