package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// scan is what the post's scanners send.
type scan struct {
	Type  string  `json:"type"`
	Label string  `json:"label" validate:"required"`
	Price float64 `json:"price"`
}

func scanned(_ workflow.Message, s scan) (workflow.Address, Stamp, error) {
	return workflow.Address{BusinessKey: s.Label}, Stamp{Price: s.Price}, mine(s.Type, "scanned")
}

func announced(m workflow.Message, s scan) (workflow.Address, Pack, error) {
	return workflow.Address{}, Pack{To: "Graz", Label: s.Label}, mine(m.Type, "announced")
}

func mine(kind, want string) error {
	if kind != want {
		return workflow.ErrNotMine
	}
	return nil
}

// post takes messages of the post, which signs with a word.
func withPost(c *api.Config) {
	verify := func(h http.Header, _ []byte) (string, error) {
		if h.Get("Signature") != "the post" {
			return "", errors.New("the signature is not the post's")
		}
		return h.Get("Id"), nil
	}
	c.Inbox = map[string]api.Consumer{"post": {Verify: verify}, "post of acme": {Tenant: "acme", Verify: verify}}
}

// mail posts a message that is signed.
func (s *server) mail(id, body string, headers ...string) answer {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/inbox/post", []byte(body), append([]string{"Id", id, "Signature", "the post"}, headers...)...)
}

func (s *server) deadMessages(query string) api.DeadMessagePage {
	s.t.Helper()
	a := s.get("/v1/ops/inbox" + query)
	a.want(s.t, http.StatusOK)
	return read[api.DeadMessagePage](s.t, a)
}

func TestSignedMessageIsConsumedOnce(t *testing.T) {
	s := newServer(t, withPost)
	first := s.mail("m-1", `{"type":"announced","label":"L-1","more":[{}]}`)
	first.want(t, http.StatusCreated)
	again := s.mail("m-1", `{"type":"announced","label":"L-1","more":[{}]}`, "Pawl-Tenant", "ignored", "Content-Type", "text/plain")
	assert.Truef(t, again.status == 201 && again.header.Get("Idempotent-Replayed") == "true" && string(again.body) == string(first.body),
		"again: %d %s", again.status, again.body)
	s.mail("m-2", `{"type":"scanned","label":"L-1","price":2}`).want(t, http.StatusOK)
	status := read[wire.CommandStatus](t, s.get("/v1/commands/inbox:post/m-2"))
	assert.Truef(t, status.Status == transitions.Succeeded && status.Transition == "stamp", "%+v", status)
	assert.Contains(t, string(s.get("/v1/workflows/parcel").body), `"receives":["post"]`)
	// Another path is another tenant's.
	s.do(http.MethodPost, "/v1/inbox/post%20of%20acme", []byte(`{}`), "Id", "m-1", "Signature", "the post").wantProblem(t, 422,
		workflow.MessageNotTaken)
	list := read[api.DeadMessagePage](t, s.get("/v1/ops/inbox", "Pawl-Tenant", "acme")).Messages
	assert.Truef(t, len(list) == 1 && list[0].Consumer == "post of acme", "%+v", list)
	// The message was consumed, even if its answer has expired.
	s.exec("UPDATE pawl.command SET expires_at = now() - interval '1 s'")
	assert.Equal(t, `{"expired":true}`, string(s.mail("m-2", `{"type":"scanned","label":"L-1","price":2}`).body))
}

func TestRefusedMessagesAreDead(t *testing.T) {
	s := newServer(t, withPost)
	s.mail("m-0", `{"type":"announced","label":"L-1"}`).want(t, http.StatusCreated)
	for _, tt := range []struct {
		id, body string
		code     workflow.Code
	}{
		{"m-0", `{"type":"announced","label":"L-2"}`, workflow.MessageReused},
		{"m-1", `{"type":"sung","label":"L-1"}`, workflow.MessageNotTaken},
		{"m-3", "", workflow.InvalidPayload},
		{"m-4", "\x00\xff", workflow.InvalidPayload},
		{"m-7", `{"type":"scanned","label":"L-9"}`, workflow.InstanceNotFound},
	} {
		for range 2 {
			s.mail(tt.id, tt.body).wantProblem(t, tt.code.Info().Status, tt.code)
		}
		sum := sha256.Sum256([]byte(tt.body))
		list := s.deadMessages("").Messages
		last := list[len(list)-1]
		assert.Truef(t, last.Message == tt.id && last.Code == tt.code && last.Hash == hex.EncodeToString(sum[:]) &&
			last.Size == len(tt.body) && last.Deliveries == 2, "%+v", last)
		body := s.get(fmt.Sprintf("/v1/ops/inbox/body?consumer=post&message=%s&hash=%x", tt.id, sum))
		assert.Truef(t, string(body.body) == tt.body && body.header.Get("Content-Type") == "application/octet-stream",
			"the body is %q, %v", body.body, body.header)
	}
	s.post("/v1/workflows/parcel/keys/L-1/send", "k", `{"via":"rail"}`, "Pawl-Actor", "ann").want(t, http.StatusOK)
	s.mail("m-8", `{"type":"scanned","label":"L-1"}`).wantProblem(t, 409, workflow.IllegalTransition)
}

// A message that is not signed leaves nothing behind.
func TestUnsignedMessagesLeaveNoTrace(t *testing.T) {
	s := newServer(t, withPost, func(c *api.Config) { c.Limits.Rate, c.Limits.Burst, c.Limits.BulkItems = 0.001, 4, 4 })
	before := s.rows()
	good := `{"type":"announced","label":"L-1"}`
	for name, tt := range map[string]struct {
		body    string
		headers []string
		code    workflow.Code
	}{
		"unsigned":              {good, []string{"Id", "m"}, workflow.Unauthorized},
		"wrongly signed":        {good, []string{"Id", "m", "Signature", "me"}, workflow.Unauthorized},
		"a large one, unsigned": {strings.Repeat("x", transitions.MaxMessage), nil, workflow.Unauthorized},
		"too large":             {strings.Repeat("x", transitions.MaxMessage+1), []string{"Id", "m", "Signature", "the post"}, workflow.TooLarge},
		"no id":                 {good, []string{"Signature", "the post"}, workflow.InvalidRequest},
		"a long id":             {good, []string{"Id", strings.Repeat("i", 256), "Signature", "the post"}, workflow.InvalidRequest},
		"an id in Latin-1":      {good, []string{"Id", "\xff", "Signature", "the post"}, workflow.InvalidRequest},
	} {
		s.do(http.MethodPost, "/v1/inbox/post", []byte(tt.body), tt.headers...).wantProblem(t, tt.code.Info().Status, tt.code)
		require.Falsef(t, t.Failed(), "a message that is: %s", name)
	}
	assert.Equal(t, before, s.rows())
	s.mail("m-1", good).want(t, http.StatusCreated) // the fourth that is signed
	a := s.mail("m-2", good)                        // messages count for the rate of their tenant
	a.wantProblem(t, 429, workflow.RateLimited)
	assert.NotEmpty(t, a.header.Get("Retry-After"))
	assert.Empty(t, s.deadMessages("").Messages)
}

// about is the body of an operation on a message of the list.
func about(m api.DeadMessage, reason string) []byte {
	body, err := json.Marshal(api.MessageOperation{Consumer: m.Consumer, Message: m.Message, Hash: m.Hash, Reason: reason})
	if err != nil {
		panic(err)
	}
	return body
}

func TestMessagesAreRetriedAndDiscarded(t *testing.T) {
	s := newServer(t, withPost)
	for i := range 4 {
		s.mail(fmt.Sprint("m-", i), `{"type":"scanned","label":"L-1"}`).wantProblem(t, 404, workflow.InstanceNotFound)
	}
	first := s.deadMessages("?limit=3")
	rest := s.deadMessages("?limit=3&cursor=" + url.QueryEscape(first.Next))
	require.Truef(t, len(first.Messages) == 3 && len(rest.Messages) == 1 && rest.Next == "", "%+v, then %+v", first, rest)
	list := first.Messages
	op := func(action string, m api.DeadMessage) answer {
		return s.do(http.MethodPost, "/v1/ops/inbox/"+action, about(m, "by word of mouth"), "Content-Type", "application/json", "Pawl-Actor",
			"olga")
	}
	op("retry", list[0]).wantProblem(t, 404, workflow.InstanceNotFound)
	m := read[api.DeadMessage](t, op("discard", list[1]))
	assert.Truef(t, m.Status == inspect.MessageDiscarded && m.ChangedBy == "olga" && m.Reason == "by word of mouth", "%+v", m)
	s.post("/v1/workflows/parcel/label", "k", `{"to":"Linz","label":"L-1"}`).want(t, http.StatusCreated)
	op("retry", list[0]).want(t, http.StatusOK)
	assert.Equal(t, "true", op("retry", list[0]).header.Get("Idempotent-Replayed"))
	s.mail("m-1", `{"type":"scanned","label":"L-1"}`).wantProblem(t, 409, workflow.CommandCancelled)
	for status, want := range map[string]string{"waiting": "m-2 m-3", "retried": "m-0", "discarded": "m-1"} {
		var ids []string
		for _, m := range s.deadMessages("?consumer=post&status=" + status).Messages {
			ids = append(ids, m.Message)
		}
		assert.Equal(t, want, strings.Join(ids, " "), status)
	}
	assert.Empty(t, s.deadMessages("?consumer=nobody").Messages)
}

func TestDeadMessageOperationsAreChecked(t *testing.T) {
	s := newServer(t, withPost)
	s.mail("m", `{}`).wantProblem(t, 400, workflow.InvalidPayload)
	hash := s.deadMessages("").Messages[0].Hash
	large := transitions.Message{Consumer: "post", ID: "large", Body: make([]byte, transitions.MaxMessage+1)}
	_, err := s.engine.Consume(t.Context(), large)
	require.Error(t, err, "it was consumed")
	before := s.rows()
	for _, c := range []struct {
		consumer, message, hash string
		code                    workflow.Code
	}{
		{"post", "m", "00", workflow.InvalidRequest},
		{"post", "m", strings.ToUpper(hash), workflow.InvalidRequest},
		{"post", "m", strings.Repeat("0", 64), workflow.NotFound},
		{"post", "n", hash, workflow.NotFound},
		{"other", "m", hash, workflow.NotFound},
		{"post", "large", fmt.Sprintf("%x", large.Hash()), workflow.TooLarge}, // of which no body is kept
	} {
		target := fmt.Sprintf(`{"consumer":%q,"message":%q,"hash":%q}`, c.consumer, c.message, c.hash)
		s.do(http.MethodPost, "/v1/ops/inbox/retry", []byte(target), "Content-Type", "application/json").
			wantProblem(t, c.code.Info().Status, c.code)
		s.get(fmt.Sprintf("/v1/ops/inbox/body?consumer=%s&message=%s&hash=%s", c.consumer, c.message, c.hash)).
			wantProblem(t, c.code.Info().Status, c.code)
	}
	s.operator("POST", "inbox/discard", string(about(api.DeadMessage{Consumer: "post", Message: "n", Hash: hash}, ""))).
		wantProblem(t, 404, workflow.NotFound)
	s.operator("POST", "inbox/discard", string(about(api.DeadMessage{Consumer: "post", Message: "m", Hash: hash}, strings.Repeat("r", 4097)))).
		wantProblem(t, 400, workflow.InvalidRequest)
	assert.Equal(t, before, s.rows(), "rows")
}

func keeping(keep time.Duration) func(*api.Config) {
	return func(c *api.Config) {
		withPost(c)
		post := c.Inbox["post"]
		post.Keep = keep
		c.Inbox["post"] = post
	}
}

func (s *server) kept(query string) []api.KeptMessage {
	s.t.Helper()
	a := s.get("/v1/ops/inbox/kept" + query)
	a.want(s.t, http.StatusOK)
	return read[api.KeptMessagePage](s.t, a).Messages
}

func TestMessagesAreKeptAsReceived(t *testing.T) {
	s := newServer(t, keeping(time.Hour))
	body := ` {"type":"announced",  "label":"L-1"}`
	s.mail("m-1", body, "Authorization", "Bearer secret", "Cookie", "a=secret", "X-Odd", "caf\xe9", "Content-Type", "text/plain").want(t, 201)
	s.mail("m-1", body, "X-Odd", "again").want(t, 201)
	s.mail("m-1", body+" ").wantProblem(t, 422, workflow.MessageReused)
	s.mail("m-2", `nonsense`).wantProblem(t, 400, workflow.InvalidPayload)
	s.do(http.MethodPost, "/v1/inbox/post", []byte(body), "Id", "m-3", "Signature", "mine").wantProblem(t, 401, workflow.Unauthorized)
	s.do(http.MethodPost, "/v1/inbox/post%20of%20acme", []byte(`{}`), "Id", "m-4", "Signature", "the post").wantProblem(t, 422,
		workflow.MessageNotTaken) // of a consumer that keeps nothing
	list := s.kept("")
	if len(list) != 3 || list[0].Message != "m-1" || list[0].Size != len(body) || list[2].Message != "m-2" || list[0].Consumer != "post" {
		t.Fatalf("%+v", list)
	}
	assert.Equal(t, 2, len(s.kept("?consumer=post&message=m-1")), "with that id")
	assert.Equal(t, 0, len(s.kept("?consumer=other")), "another consumer")
	first := read[api.KeptMessagePage](t, s.get("/v1/ops/inbox/kept?limit=2"))
	rest := s.kept("?limit=2&cursor=" + first.Next)
	assert.Truef(t, len(first.Messages) == 2 && len(rest) == 1 && rest[0] == list[2], "%+v, then %+v", first, rest)
	a := s.get("/v1/ops/inbox/kept/message?consumer=post&message=m-1&hash=" + list[0].Hash)
	a.want(t, http.StatusOK)
	raw := read[api.RawMessage](t, a)
	if raw.KeptMessage != list[0] || raw.Body != base64.StdEncoding.EncodeToString([]byte(body)) ||
		raw.KeepUntil.Sub(raw.ReceivedAt) != time.Hour ||
		!slices.Equal(raw.Headers["Signature"], []string{"the post"}) || !slices.Equal(raw.Headers["X-Odd"], []string{"caf\uFFFD"}) {
		t.Errorf("%+v", raw)
	}
	assert.NotContainsf(t, string(a.body), "secret", "it shows credentials: %v", slices.Collect(maps.Keys(raw.Headers)))
	assert.Empty(t, read[api.KeptMessagePage](t, s.get("/v1/ops/inbox/kept", "Pawl-Tenant", "acme")).Messages, "another tenant sees")
	_, err := s.pool.Exec(t.Context(), "UPDATE pawl.inbox_kept SET keep_until = now() WHERE message = 'm-1'")
	require.NoError(t, err)
	assert.Equal(t, 1, len(s.kept("")), "after their time")
	s.get("/v1/ops/inbox/kept/message?consumer=post&message=m-1&hash="+list[0].Hash).wantProblem(t, 404, workflow.NotFound)
}
