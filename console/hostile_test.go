package console_test

import (
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/transitions"
)

// payloads are texts that would run where they are taken for more than texts.
var payloads = []string{
	`<script>document.title='ran'</script>`, `"><img src=x onerror="document.title='ran'">`, `'><svg onload=document.title='ran'>`,
	`</textarea><script>document.title='ran'</script>`, `</script><script>document.title='ran'</script>`, `javascript:document.title='ran'`,
	`{{.}}{{constructor.constructor('document.title=1')()}}`, `<iframe srcdoc="<script>parent.document.title='ran'</script>">`,
	`" autofocus onfocus="document.title='ran'" x="`, "\u202Eevil\u202C <b>rtl</b>", `&lt;script&gt;document.title='ran'&lt;/script&gt;`,
	`<a href="javascript:document.title='ran'">x</a>`, `<base href="//evil.example/">`, `--><script>document.title='ran'</script><!--`,
	`<meta http-equiv=refresh content="0;url=//evil.example">`, `<style>*{display:none}</style>`,
}

// loose finds elements whose text could reverse the direction of adjacent text.
const loose = `(() => {
	const found = [], texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
	const isolates = (e) => /isolate|plaintext/.test(getComputedStyle(e).unicodeBidi);
	while (texts.nextNode()) {
		let e = texts.currentNode.parentElement;
		if (!texts.currentNode.data.includes('\u202e') || e.closest('option, textarea')) continue;
		while (getComputedStyle(e).display === 'inline' && !isolates(e)) e = e.parentElement;
		if (getComputedStyle(e).display !== 'inline' &&
			[...e.childNodes].filter((c) => c.textContent.trim()).length > 1) found.push(e.outerHTML.slice(0, 300));
	}
	return found;
})()`

// Whatever is stored, it is text on every page.
func TestHostileTextsAreEscaped(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	r := &receiver{}
	s := newStand(t, func(c *service.Config) { c.Sinks = []relay.Sink{{Name: "books", To: r}} })
	all := strings.Join(payloads, " ")
	key := s.key("boss", everything)
	visitor := s.visitor(key)
	p := s.open(s.URL(), key, "/")
	var paths []string
	tried := append(payloads, all[:400])
	for _, text := range tried {
		r.says.Store(&text)
		paths = append(paths, s.hostile(visitor, text)...)
	}
	s.filed("the last", 10)
	s.awaitDead()
	require.NoError(t, s.Engine().Admin().PauseWorkflow(t.Context(), "default", "order", "olga", all[:400]))
	paths = append(paths, "/", "/log", "/keys", "/stuck", "/commands", "/paused", "/instances?workflow=claim",
		"/messages", "/messages?status=discarded", "/sinks",
		"/sinks/books",
		"/sinks/books?status=skipped", "/workflows", "/workflows/order")
	for _, path := range paths {
		p.Navigate(s.URL() + "/console" + path)
		title := chromium.Eval[string](p, `document.title`)
		assert.Contains(t, title, "· Pawl", path) // "ran" if something has run
		require.Equalf(t, s.URL(), chromium.Eval[string](p, `location.origin`), "%s leads to", path)
		strange := chromium.Eval[int](p,
			`document.querySelectorAll('main script, main iframe, main base, main meta, main style, main [onerror], '+
			'main [onload], main [onfocus], main a[href^="javascript"]').length`)
		assert.Zero(t, strange, path)
		assert.Empty(t, chromium.Eval[[]string](p, loose), path)
	}
	wantInOrder(t, s.URL(), p)
}

// hostile stores a text wherever one can be stored, and returns the addresses of pages that show it.
func (s *stand) hostile(v *visitor, text string) (paths []string) {
	s.t.Helper()
	short := strings.ToValidUTF8(text[:min(len(text), 100)], "")
	made := v.fill("/console/workflows/claim/do/file", "p/number", short, "p/who", text, "p/amount", "7").want(303)
	id := uuid.MustParse(strings.TrimSuffix(strings.TrimPrefix(made.location(), "/console/instances/"), "?done=1"))
	of := "/instances/" + id.String()
	v.fill("/console"+of+"/do/note", "p/note", text).want(303)
	v.fill("/console"+of+"/do/note", "p/note", "", "reason", text).want(303)
	s.submit(transitions.Command{Instance: id, Transition: "note", Actor: short, Key: short, Payload: []byte(`{"note":"x"}`)})
	v.fill("/console"+of+"/pause", "reason", text).want(303)
	v.fill("/console"+of+"/resume", "reason", text).want(303)
	s.do(id, "approve", "bob", `{}`)
	payload, err := json.Marshal(map[string]string{"note": text})
	require.NoError(s.t, err)
	s.do(id, "call", "bob", string(payload)) // which reports it
	await.Receive(s.t, "the bank is asked", s.bank.asked) <- errors.New(text)
	stuck := s.stuck("stuck " + uuid.NewString())
	settled := s.flight(stuck)
	v.fill("/console/stuck/abandon", append(settled, "reason", text)...).want(303)
	s.deadMessage(short)
	q, _ := url.ParseQuery(html.UnescapeString(bodyOf.FindString(v.get("/console/messages").text)))
	v.fill("/console/messages/discard", "consumer", q.Get("consumer"), "message", q.Get("message"), "hash", q.Get("hash"), "reason",
		text).want(303)
	s.awaitDead()
	v.fill("/console/sinks/books/skip", "reason", text).want(303)
	v.fill("/console/keys/new", "name", text[:min(len(text), 60)], "grants", "read")
	s.awaitCase("the attempt has failed", id, failedOnce)
	esc := url.QueryEscape(text)
	return append(paths, of, of+"?version=2", of+"/do/note", of+"?at="+esc, "/commands?"+queryOf(s.flight(id)), "/instances/"+stuck.String(),
		"/commands?"+queryOf(settled), "/find?q="+esc+"%3F", "/instances?workflow=claim&attr.who="+esc, "/instances?workflow="+esc, "/log?type="+
			esc,
		"/commands?scope="+esc+"&key="+esc, "/sinks/"+url.PathEscape(strings.ReplaceAll(text, "/", ":")))
}

// bodyOf is the query of a dead message.
var bodyOf = regexp.MustCompile(`consumer=[^"]+`)
