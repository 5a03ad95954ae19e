package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
)

func published(c *service.Config) { c.Network.PublicURL = "https://pawl.example.com/a/pawl" }

func TestPublicURLNamesRedirect(t *testing.T) {
	t.Parallel()
	s, _ := withProvider(t, map[string]any{"sub": "ann", "tenant": "default", "scope": "read"}, published)
	p := newVisitor(t, s.URL()).get("/console/sign-in/provider").want(http.StatusSeeOther)
	to, err := url.Parse(p.location())
	got := to.Query().Get("redirect_uri")
	assert.Truef(t, err == nil && got == "https://pawl.example.com/a/pawl/console/signed-in", "%s, %v", got, err)
	assert.Contains(t, p.header.Get("Set-Cookie"), "; Path=/a/pawl/console/signed-in;")
}

// A browser follows pages, and sees the interface, below the prefix.
func TestBrowserUsesPrefix(t *testing.T) {
	t.Parallel()
	s := newStand(t, published, func(c *service.Config) { c.Auth.Keys = false })
	id := s.filed("A-1", 10)
	browser := chromium.Start(t)
	p := browser.Open(s.URL() + "/a/pawl/console/instances/" + id.String())
	p.WaitText("#live", "live")
	s.do(id, "note", "ann", `{"note":"seen below the prefix"}`)
	await.Eventually(t, "the page shows the note", func() bool { return strings.Contains(p.Text("main"), "seen below the prefix") })
	docs := browser.Open(s.URL() + "/a/pawl/docs")
	await.Eventually(t, "the interface is shown", func() bool {
		return strings.Contains(chromium.Eval[string](docs, `document.querySelector('rapi-doc')?.shadowRoot?.textContent ?? ''`), "/claim/file")
	})
	for _, problem := range append(p.Seen().Problems, docs.Seen().Problems...) {
		t.Errorf("the page: %s", problem)
	}
}
