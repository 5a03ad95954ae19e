package api_test

import (
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/workflow"
)

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
