package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/cmd/pawl/shop"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// The second node of the story is this program again, and so is its command line.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"serve", "keys", "ops"}, os.Args[1]) {
		os.Exit(cli.Execute(shop.Command()))
	}
	pgtest.Main(m)
}

// The story is told, checks what it tells, and can be told again.
func TestStoryIsAsToldAndCanBeToldAgain(t *testing.T) {
	t.Parallel()
	c := Config{Database: pgtest.URL(t), Once: true}
	var out bytes.Buffer
	c.Out = &out
	require.NoError(t, Run(t.Context(), c), out.String())
	for _, want := range []string{
		"= a replay: the stored answer, byte for byte", "422 Unprocessable Entity", "the screen saw each of them once",
		"= it took three attempts", "= c-1:k-10 was charged once", "= c-1:k-11 was charged once and refunded once",
		"= not even the database was asked", "= one message is on the list",
		"= done by the second attempt", "= c-1:k-12 was charged once", "= one event waits for an operator",
		"= it arrived, with the id that it had the first time",
		"= one was done, 49 are replays", "= refused before anything was looked at", "= the browser saw its order placed and paid",
		"this takes the grant \\\"submit:order#c-1%3Ak-15/refund\\\"", "a second node is at http://127.0.0.1:",
		"= the only open case would stay in its state", "= begun under version 1, ended under version 2",
		"= found: the row of version 2", "steps were as told",
	} {
		assert.Contains(t, out.String(), want, "the story does not tell")
	}
	assert.NotContains(t, out.String(), "\x1b", "colours, but not on a terminal")
	again, err := openStage(t.Context(), c.Database, &printer{out: io.Discard})
	require.NoError(t, err)
	assert.NoError(t, again.close())
}

func TestSecondDemoOnADatabaseIsRefused(t *testing.T) {
	url := pgtest.URL(t)
	first, err := openStage(t.Context(), url, &printer{out: io.Discard})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, first.close())
	}()
	err = Run(t.Context(), Config{Database: url, Once: true, Out: io.Discard})
	assert.ErrorContains(t, err, "another demo is running")
}

func TestASchemaThatNoDemoMadeIsNotDropped(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, err := pool.Exec(t.Context(), "CREATE SCHEMA pawl_demo; CREATE TABLE pawl_demo.mine ()"); err != nil {
		t.Fatal(err)
	}
	st, err := openStage(t.Context(), pool.Config().ConnString(), &printer{out: io.Discard})
	assert.ErrorContains(t, err, "was not made by this demo", st)
	_, err = pool.Exec(t.Context(), "TABLE pawl_demo.mine")
	assert.NoError(t, err)
}

// Without Once the service stays up until it is told to end.
func TestDemoStaysUpUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{Database: pgtest.URL(t), Address: "127.0.0.1:0", Out: w})
		_ = w.Close()
	}()
	var out strings.Builder
	buf := make([]byte, 4096)
	for asked := false; ; {
		n, err := r.Read(buf)
		out.Write(buf[:n])
		if _, rest, up := strings.Cut(out.String(), "stays up until"); up && !asked && strings.Contains(rest,
			" ops inbox list --schema pawl_demo") {
			asked = true
			for _, before := range []string{"stands still:", "follow it:", "curl "} { // the console, the page, and the first address to try
				_, at, _ := strings.Cut(rest, before)
				resp, err := http.Get(strings.Fields(at)[0])
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("explore: %v, %v", resp, err)
				} else if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
			}
			cancel()
		}
		if err != nil {
			break
		}
	}
	assert.NoError(t, <-ended, out.String())
}

// A server that does something else than is told ends the story.
func TestStory_UnexpectedOutput(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") == "again" {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		body := `{"state":"paid","n":1,"list":[{"id":"x"}],"path":"` + r.URL.Path + `"}`
		if r.URL.Path == "/ledger" {
			body = `{"a":{"reference":"twice","charges":2},"b":{"reference":"apart","charges":1},
				"c":{"reference":"apart","charges":1},"d":{"reference":"once","charges":1}}`
		}
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	ledger := func(s *story, reference string, charges, refunds int, says string) {
		s.ask(t.Context(), "", get("/ledger"), 200, books(reference, charges, refunds, says))
	}
	a := answer{status: 200, body: []byte(`{"state":"paid","n":1,"list":[{"id":"x"}],"path":"/a"}`)}
	ask := func(r request, status int, checks ...check) func(*story) {
		return func(s *story) { s.ask(t.Context(), "", r, status, checks...) }
	}
	for _, tt := range []struct {
		name string
		step func(*story)
		want string // of the error, "" for none
	}{
		{"status", ask(get("/a"), 201), "the answer is 200, and should be 201"},
		{"member", ask(get("/a"), 200, has("state", "placed", "")), `"state" is paid, and should be placed`},
		{"number", ask(get("/a"), 200, has("n", 1, "")), ""},
		{"no member", ask(get("/a"), 200, has("gone", 1, "")), `"gone" is , and should be 1`},
		{"element", ask(get("/a"), 200, has("list.0.id", "x", "")), ""},
		{"no element", ask(get("/a"), 200, has("list.1.id", "x", "")), `"list.1.id" is , and`},
		{"too few", ask(get("/a"), 200, has("list.#", 2, "")), `"list.#" is 1, and should be 2`},
		{"replay", ask(post("/a", "again", ""), 200, replayOf(a)), ""},
		{"no replay", ask(post("/a", "first", ""), 200, replayOf(a)), `Idempotent-Replayed is "", and should be "true"`},
		{"another answer", ask(post("/b", "again", ""), 200, replayOf(a)), "the replay is"},
		{"not first", ask(post("/a", "again", ""), 200, first), `Idempotent-Replayed is "true"`},
		{"charged twice", func(s *story) { ledger(s, "twice", 1, 0, "") }, "charged 2 times"},
		{"charged with two keys", func(s *story) { ledger(s, "apart", 1, 0, "") }, "with 2 keys"},
		{"not asked to charge", func(s *story) { ledger(s, "never", 1, 0, "") }, "with 0 keys"},
		{"charged once", func(s *story) { ledger(s, "once", 1, 0, "") }, ""},
	} {
		s := &story{printer: &printer{out: io.Discard}, url: server.URL, client: server.Client()}
		tt.step(s)
		switch {
		case tt.want == "" && s.err != nil, tt.want != "" && (s.err == nil || !strings.Contains(s.err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, s.err, tt.want)
		case s.err != nil && !strings.HasPrefix(s.err.Error(), "step 1 is not as told: "):
			t.Errorf("%s: %v", tt.name, s.err)
		}
	}
}

// The error contains the output of a second node that does not serve.
func TestSecondNodeThatDoesNotServeEndsTheStory(t *testing.T) {
	bank, err := shop.StartProvider(t.Context())
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, bank.Stop())
	}()
	s := &story{printer: &printer{out: io.Discard}, stage: &stage{}, bank: bank}
	_, _, err = s.startNode(t.Context(), "1ms")
	assert.ErrorContains(t, err, "--lease 1ms is less than a second")
}

// A demo without a listener fails and ends.
func TestOutputThatCannotBeWrittenEndsTheDemo(t *testing.T) {
	t.Parallel()
	broken := errors.New("the pipe is broken")
	r, w := io.Pipe()
	_ = r.CloseWithError(broken)
	err := Run(t.Context(), Config{Database: pgtest.URL(t), Once: true, Out: w})
	assert.ErrorIs(t, err, broken)
}

func TestColoursAreForTerminals(t *testing.T) {
	var plain, painted bytes.Buffer
	(&printer{out: &plain}).received("x")
	(&printer{out: &painted, color: true}).received("x")
	assert.Truef(t, plain.String() == "     < x\n" && painted.String() == "     \x1b[32m<\x1b[0m x\n",
		"%q, %q", plain.String(), painted.String())
}

// Without a database the demo starts its own server, which is removed with the demo.
func TestTheDemoHasAPrivateServerOfItsOwn(t *testing.T) {
	t.Parallel()
	var urls []string
	for range 2 {
		st, err := openStage(t.Context(), "", &printer{out: io.Discard})
		require.NoError(t, err)
		defer func() {
			assert.NoError(t, st.close())
			if conn, err := pgx.Connect(context.Background(), st.url); err == nil {
				_ = conn.Close(context.Background())
				t.Error("its server goes on without it")
			}
		}()
		urls = append(urls, st.url)
	}
	assert.NotEqual(t, urls[1], urls[0], "two demos share the server")
}
