package page_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order/page"
)

// visitor is a browser without a screen.
type visitor struct {
	*http.Client
	origin string
}

// newVisitor loads the page, and so has a session.
func newVisitor(t *testing.T, s *stand) visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	v := visitor{&http.Client{Jar: jar}, s.origin()}
	status, text, _ := v.send(t, http.MethodGet, "/shop/", "")
	require.Truef(t, status == 200 && strings.Contains(text, "Place the order"), "%d %s", status, text)
	return v
}

func (v visitor) send(t *testing.T, method, path, body string, header ...string) (status int, text string, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, v.origin+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := v.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(all), answer.Header
}

// followed is what the page gets of its backend.
type followed struct{ Number, Ticket string }

// ask sends the page's request for a cart.
func (v visitor) ask(t *testing.T, path, cart string) (f followed) {
	t.Helper()
	status, text, _ := v.send(t, http.MethodPost, path, fmt.Sprintf(`{"cart":%q,"item":"lamp","quantity":2}`, cart))
	err := json.Unmarshal([]byte(text), &f)
	require.Truef(t, status == 200 && err == nil && f.Ticket != "", "%s: %d %s, %v", path, status, text, err)
	return f
}

const cart = "0123456789ab"

func TestACartIsOneOrderOfItsCustomer(t *testing.T) {
	t.Parallel()
	s := newStand(t, 0)
	ann, ben := newVisitor(t, s), newVisitor(t, s)
	first, again, other := ann.ask(t, "/shop/orders", cart), ann.ask(t, "/shop/orders", cart), ben.ask(t, "/shop/orders", cart)
	assert.Truef(t, first.Number == again.Number && first.Number != other.Number,
		"Ann's order is %s, then %s, and Ben's %s", first.Number, again.Number, other.Number)
	assert.Equal(t, 2, len(s.list(t)), "there orders")
	fresh := ann.ask(t, "/shop/tickets", cart)
	assert.Equal(t, first.Number, fresh.Number, "the ticket is for")
}

func TestATicketOfThePageIsForOneOrder(t *testing.T) {
	t.Parallel()
	s := newStand(t, 0)
	ann, ben := newVisitor(t, s), newVisitor(t, s)
	mine, other := ann.ask(t, "/shop/orders", cart), ben.ask(t, "/shop/orders", cart)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/keys/" + mine.Number, "", 200},
		{"GET", "/keys/" + mine.Number + "/history", "", 200},
		{"GET", "/keys/" + mine.Number + "/transitions", "", 200},
		{"GET", "/keys/" + other.Number, "", 403},
		{"POST", "/keys/" + other.Number + "/cancel", `{"reason":"mine"}`, 403},
		{"POST", "/keys/" + mine.Number + "/refund", `{"reason":"mine"}`, 403},
		{"POST", "/place", `{"customer":"c","cart":"c","total":1,"currency":"EUR"}`, 403},
		{"POST", "/keys/" + mine.Number + "/cancel", `{"reason":"mine"}`, 200},
	} {
		status, text, _ := ann.send(t, c.method, "/v1/workflows/order"+c.path, c.body,
			"Authorization", "Bearer "+mine.Ticket, "Idempotency-Key", "k")
		assert.Equalf(t, c.status, status, "%s %s %s", c.method, c.path, text)
	}
}

func TestTheBackendRefusesWhatNoPageOfItsOwnSends(t *testing.T) {
	t.Parallel()
	s := newStand(t, 0)
	ann, stranger := newVisitor(t, s), visitor{http.DefaultClient, s.origin()}
	good := `{"cart":"` + cart + `","item":"lamp","quantity":1}`
	for name, c := range map[string]struct {
		who    visitor
		body   string
		header []string
		status int
	}{
		"no session":    {stranger, good, nil, 403},
		"another site":  {ann, good, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"other origin":  {ann, good, []string{"Origin", "http://127.0.0.1:1"}, 403},
		"no JSON":       {ann, "{", nil, 400},
		"no cart":       {ann, `{"cart":"../../x","item":"lamp","quantity":1}`, nil, 400},
		"no such item":  {ann, `{"cart":"` + cart + `","item":"moon","quantity":1}`, nil, 400},
		"none of it":    {ann, `{"cart":"` + cart + `","item":"lamp","quantity":0}`, nil, 400},
		"another order": {ann, `{"cart":"` + cart + `","item":"desk","quantity":1}`, nil, 422},
	} {
		if name == "another order" {
			ann.ask(t, "/shop/orders", cart)
		}
		status, text, _ := c.who.send(t, http.MethodPost, "/shop/orders", c.body, c.header...)
		assert.Truef(t, status == c.status && !strings.Contains(text, "pawl_"), "%s: %d %s", name, status, text)
	}
}

func TestThePageAllowsNothingButItself(t *testing.T) {
	t.Parallel()
	s := newStand(t, 0)
	ann := newVisitor(t, s)
	for path, media := range map[string]string{"": "text/html", "page.js": "text/javascript", "style.css": "text/css",
		"icon.svg": "image/svg+xml"} {
		status, _, h := ann.send(t, http.MethodGet, page.Path+path, "")
		if policy := h.Get("Content-Security-Policy"); status != 200 || !strings.HasPrefix(h.Get("Content-Type"), media) ||
			!strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, status, h)
		}
	}
	status, _, _ := ann.send(t, http.MethodGet, page.Path+"page.go", "")
	assert.Equal(t, 404, status, "its source")
}

// Behind a proxy that ends TLS the session is still for TLS alone.
func TestSession_WithoutTLS(t *testing.T) {
	h, err := page.New(page.Config{Pawl: "http://127.0.0.1:1", Key: "pawl_none", Log: quiet})
	require.NoError(t, err)
	for host, secure := range map[string]bool{"shop.example": true, "10.0.0.1:8080": true, "localhost:8080": false, "127.0.0.1": false,
		"[::1]:8080": false} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+page.Path, nil))
		all := w.Result().Cookies()
		assert.Truef(t, len(all) == 1 && all[0].Secure == secure && all[0].HttpOnly && all[0].SameSite == http.SameSiteStrictMode,
			"%s: %v", host, all)
	}
}

// What is wrong with the backend itself is not the customer's to read.
func TestABackendWithoutItsKeySaysNothingOfIt(t *testing.T) {
	t.Parallel()
	s := newStand(t, 0)
	h, err := page.New(page.Config{Pawl: s.guarded.URL(), Key: "pawl_wrong", Log: quiet})
	require.NoError(t, err)
	broken := httptest.NewServer(h)
	defer broken.Close()
	v := newVisitor(t, s)
	v.origin = broken.URL
	v.send(t, http.MethodGet, "/shop/", "")
	status, text, _ := v.send(t, http.MethodPost, "/shop/orders", `{"cart":"`+cart+`","item":"lamp","quantity":1}`)
	assert.Truef(t, status == 502 && text == `{"status":502,"detail":"the shop has a problem: try again in a moment"}`,
		"%d %s", status, text)
	for _, c := range []page.Config{{}, {Pawl: "http://127.0.0.1"}, {Key: "k"}} {
		if _, err := page.New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
