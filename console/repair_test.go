package console_test

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// receiver refuses every event for good until it is open.
type receiver struct {
	open atomic.Bool
	got  atomic.Int64
	says atomic.Pointer[string]
}

func (r *receiver) Deliver(_ context.Context, events []transitions.Logged) []*sink.Failure {
	if r.open.Load() {
		r.got.Add(int64(len(events)))
		return nil
	}
	said := "the address is <i>wrong</i>"
	if text := r.says.Load(); text != nil {
		said = *text
	}
	failures := make([]*sink.Failure, len(events))
	for i := range failures {
		failures[i] = sink.Fail(sink.Permanent, nil, "%s", said)
	}
	return failures
}

func (r *receiver) Close(context.Context) error { return nil }

func TestSinkPage_DeadLetters(t *testing.T) {
	t.Parallel()
	r := &receiver{}
	s := newStand(t, func(c *service.Config) { c.Sinks = []relay.Sink{{Name: "books", To: r}} })
	s.filed("A-1", 10)
	s.filed("A-2", 10)
	olga, chief := s.visitor(s.key("olga", identities["operator"])), s.visitor(s.key("carl", identities["chief"]))
	await.Eventually(t, "both are dead", func() bool {
		return strings.Count(olga.get("/console/sinks/books").text, "the address is &lt;i&gt;wrong&lt;/i&gt;") >= 2
	})
	p := olga.get("/console/sinks/books?status=waiting").want(200, "claim.file", "A-1", "/console/sinks/books/redrive", "The runbook")
	assert.NotContains(t, p.text, "/console/sinks/books/pause", "an operator of one tenant sees the way to pause the sink for all")
	olga.get("/console/").want(200, "dead letters of <bdi>books</bdi>")
	olga.get("/console/sinks").want(200, "books")

	one := regexp.MustCompile(`/console/sinks/books/skip(\?position=\d+)`).FindStringSubmatch(p.text)
	olga.get("/console/sinks/books/skip"+one[1]).want(200, "They are never delivered")
	olga.fill("/console/sinks/books/skip", "position", one[1][len("?position="):]).want(400, "a reason is required")
	olga.fill("/console/sinks/books/skip", "position", one[1][len("?position="):], "reason", "not <needed>").want(http.StatusSeeOther)
	olga.get("/console/sinks/books?status=skipped").want(200, "not &lt;needed&gt;", "<bdi>olga</bdi>")
	r.open.Store(true)
	olga.get("/console/sinks/books/redrive").want(200, "all that wait")
	olga.fill("/console/sinks/books/redrive", "reason", "mended").want(http.StatusSeeOther)
	await.Eventually(t, "the other one is delivered", func() bool { return r.got.Load() == 1 })

	chief.fill("/console/sinks/books/pause", "reason", "the books are closed").want(http.StatusSeeOther)
	chief.get("/console/sinks/books").want(200, "the books are closed", "/console/sinks/books/resume")
	chief.fill("/console/sinks/books/resume").want(http.StatusSeeOther)
	olga.get("/console/sinks/books/move").want(200, `name="position"`)
	olga.fill("/console/sinks/books/move", "position", "x", "reason", "r").want(400, "not an integer")
	olga.fill("/console/sinks/books/move", "position", "0", "reason", "once more").want(http.StatusSeeOther)
	olga.get("/console/sinks/books").want(200, "once more")
}

func TestMessagesPage_DeadMessages(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	body := s.deadMessage("m-<1>")
	s.deadMessage("m-2")
	olga := s.visitor(s.key("olga", identities["operator"]))
	p := olga.get("/console/messages").want(200, "m-&lt;1&gt;", "instance_not_found", "c-1:k-9")
	olga.get("/console/").want(200, "<b>2</b> dead messages")
	found := regexp.MustCompile(`/console/messages/body(\?[^"]+)`).FindAllStringSubmatch(p.text, -1)
	require.Len(t, found, 2, p.text)
	ref := strings.ReplaceAll(found[0][1], "&amp;", "&")
	text := olga.get("/console/messages/body"+ref).want(200, body)
	assert.Equal(t, "application/octet-stream", text.header.Get("Content-Type"))
	assert.Contains(t, text.header.Get("Content-Disposition"), "attachment")
	q, _ := url.ParseQuery(ref[1:])
	pairs := []string{"consumer", q.Get("consumer"), "message", q.Get("message"), "hash", q.Get("hash")}
	olga.get("/console/messages/retry"+ref).want(200, "as if it had just arrived")
	olga.fill("/console/messages/retry", append(pairs, "reason", "r")...).want(404)
	s.submit(transitions.Command{Workflow: "order", Transition: "place",
		Payload: []byte(`{"customer":"c-1","cart":"k-9","total":100,"currency":"EUR"}`)})
	olga.fill("/console/messages/retry", append(pairs, "reason", "it is there now")...).want(http.StatusSeeOther)
	q, _ = url.ParseQuery(strings.ReplaceAll(found[1][1], "&amp;", "&")[1:])
	pairs = []string{"consumer", q.Get("consumer"), "message", q.Get("message"), "hash", q.Get("hash")}
	olga.fill("/console/messages/discard", pairs...).want(400, "a reason is required")
	olga.fill("/console/messages/discard", append(pairs, "reason", "twice")...).want(http.StatusSeeOther)
	olga.get("/console/messages?status=discarded").want(200, "<q>twice</q>", "<bdi>olga</bdi>")
	olga.get("/console/messages?status=waiting").want(200, "There are none.")
}

func TestBulkActions(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	olga := s.visitor(s.key("olga", identities["operator"]))
	a, b, c := s.filed("B-1", 10), s.filed("B-2", 10), s.filed("B-3", 10)
	s.do(c, "lapse", "clock", `{}`)
	olga.get("/console/instances?workflow=claim").want(200, `name="id" value="`+a.String()+`"`, `<option value="do note">`,
		`<option value="pause">`)
	ids := url.Values{"id": {a.String(), b.String(), c.String()}}
	olga.get("/console/bulk?action=do+note&"+ids.Encode()).want(200, "B-1", "B-2", "B-3", "Try it first", `<button class="danger" disabled>`)
	send := func(pairs ...string) *page {
		form := olga.form(pairs...)
		form["id"] = ids["id"]
		return olga.post("/console/bulk", form)
	}
	send("action", "do note", "payload", `{"note":"x"}`, "try", "1").want(200, "Nothing was written. It can be done with 2 of 3.",
		"Submit 3 commands")
	send("action", "do note", "payload", `{`).want(200, "the payload is not JSON")
	send("action", "do note", "payload", `{"note":"x"}`, "_key", "one").want(200, "Done with 2 of 3.", "not possible in state")
	send("action", "do note", "payload", `{"note":"x"}`, "_key", "one").want(200, "Done with 2 of 3.")
	send("action", "pause", "reason", "the <office> burns").want(200, "Done with 3 of 3.")
	head, err := s.Engine().Read().Head(t.Context(), "default")
	assert.Truef(t, err == nil && head == 4+2+3, "the log is at %d, %v", head, err)
	send("action", "resume").want(200, "Done with 3 of 3.")
	for path, text := range map[string]string{"?action=do+note": "choose 1 to 100", "?action=eat&id=" + a.String(): "choose an action", "?id=" +
		a.String(): "choose an action"} {
		olga.get("/console/bulk"+path).want(400, text)
	}
	olga.get("/console/bulk?action=pause&id=nonsense&id="+a.String()).want(200, "nonsense")
	reader := s.visitor(s.key("ron", "read submit:claim/approve"))
	p := reader.get("/console/instances?workflow=claim").want(200)
	assert.True(t, !strings.Contains(p.text, "do note") && !strings.Contains(p.text, `value="pause"`), "who may not is offered it")
	form := reader.form("action", "pause", "id", a.String())
	reader.post("/console/bulk", form).want(403)
	form.Set("action", "do note")
	form.Set("payload", `{"note":"x"}`)
	reader.post("/console/bulk", form).want(200, "Done with 0 of 1.")
}

// Large texts are shown in part, and large histories page by page.
func TestPages_LargeTextsAndHistories(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.visitor(s.key("boss", everything))
	id := s.filed("L-1", 10)
	large := strings.Repeat("ü<b>", 200_000)
	for range 3 {
		s.do(id, "note", "ann", `{"note":"`+large[:len(large)-5]+`"}`)
	}
	for range 60 {
		s.do(id, "note", "ann", `{"note":"12345678901234567890"}`)
	}
	of := "/console/instances/" + id.String()
	p := v.get(of).want(200, "Version 64", "Older")
	assert.NotContains(t, p.text, "Version 1<", "all of the history is on one page")
	assert.Equal(t, 25, strings.Count(p.text, `<li id="v`), "transitions are shown")
	p = v.get(of+"?upto=14").want(200, "Newer", "Version 4<", "This is the beginning of it")
	assert.Truef(t, len(p.text) <= 200_000, "the page has %d bytes", len(p.text))
	v.get(of+"?version=3").want(200, "Version 3 of 64", "This is the beginning of it")
	assert.Equal(t, "application/json", v.get(of+"/data?version=3").want(200, large[:1000]).header.Get("Content-Type"))
	large = "9007199254740993" // which no browser's number is
	v.fill("/console/workflows/claim/do/file", "p/number", "L-2", "p/who", "w", "p/amount", large).
		want(400, `value="`+large+`"`, "more digits than a double keeps")
	large = "9007199254740991"
	p = v.fill("/console/workflows/claim/do/file", "p/number", "L-2", "p/who", "w", "p/amount", large).want(303)
	v.get(p.location()).want(200, "&#34;amount&#34;: "+large, "<ins>"+large+"</ins>")
	v.get(of+"?version=65").want(200, `role="alert"`)
	v.get(of+"/diagram?v=64").want(200, `[data-from=""][data-to="filed"] .pawl-lines{stroke:`)
}

// The form of a transition takes a reason: it is there after a dry run and after a refusal, and then in the audit.
func TestTransitionForm_Reason(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.visitor(s.key("boss", everything, "boss"))
	id := s.filed("A-1", 10)
	of := "/console/instances/" + id.String()
	const reason = "she called:\r\n<b>100%</b> \"sure\" – ж"
	shown := html.EscapeString(reason)
	v.get(of+"/do/note").want(200, `<textarea id="f-reason" name="reason"`, "Reason, for the audit")
	form := v.form("p/note", "", "reason", reason, "do", "dry")
	v.post(of+"/do/note", form).want(200, "Nothing was written", shown+"</textarea>")
	long := strings.Repeat("x", transitions.MaxReason+1)
	v.fill(of+"/do/note", "p/note", "", "reason", long).want(http.StatusBadRequest, "the reason is longer than 4096 bytes",
		long+"</textarea>")
	v.fill(of+"/do/note", "p/note", "", "reason", "\xff").want(http.StatusBadRequest, "the reason is not valid UTF-8")
	form.Set("do", "submit")
	for range 2 { // a double click
		p := v.post(of+"/do/note", form).want(http.StatusSeeOther)
		assert.Equal(t, of+"?done=2", p.location(), "it leads to")
	}
	form.Set("reason", "another") // with the key of the first
	v.post(of+"/do/note", form).want(http.StatusUnprocessableEntity, "another</textarea>")
	v.get(of).want(200, `<q>`+shown+`</q>`)

	v.fill("/console/bulk", "action", "do note", "id", id.String(), "payload", `{"note":""}`, "reason", "all of them").want(200,
		"Done with 1 of 1")
	v.fill("/console/workflows/claim/do/file", "p/number", "A-2", "p/who", "ann", "p/amount", "7", "reason", "a form on paper").want(303)
	for instance, want := range map[uuid.UUID]string{id: "|" + reason + "|all of them",
		transitions.InstanceID(transitions.DefaultTenant, "claim", "A-2"): "a form on paper"} {
		history, err := s.Engine().Read().History(t.Context(), "", instance, 0, 10)
		require.NoError(t, err)
		var got []string
		for _, e := range history {
			got = append(got, e.Reason)
		}
		assert.Equal(t, want, strings.Join(got, "|"), "the reasons")
	}
}
