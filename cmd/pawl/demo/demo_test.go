package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/shop"
	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/pgtest"
)

// The second node of the story is this program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		os.Exit(pawl.Execute(shop.Command()))
	}
	pgtest.Main(m)
}

// The story is told, checks what it tells, and can be told again.
func TestStoryIsAsToldAndCanBeToldAgain(t *testing.T) {
	t.Parallel()
	c := Config{Database: pgtest.URL(t), Once: true, Events: 500}
	for range 2 {
		var out bytes.Buffer
		c.Out = &out
		if err := Run(t.Context(), c); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		for _, want := range []string{
			"= a replay: the stored answer, byte for byte", "422 Unprocessable Entity", "the screen saw each of them once",
			"= it took three attempts", "= c-1:k-10 was charged once", "= c-1:k-11 was charged once and refunded once",
			"= not even the database was asked", "= one message is on the list",
			"= done by the second attempt", "= c-1:k-12 was charged once", "= one event waits for a person", "= it arrived, with the id that it had the first time",
			"= 1s after the table was held, by the timer",
			"= one was done, 49 are replays", "= found: the row of version 2", "0 differences", "steps were as told",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the story does not tell %q\n%s", want, out.String())
			}
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Error("colours, but not on a terminal")
		}
	}
}

func TestSecondDemoOnADatabaseIsRefused(t *testing.T) {
	url := pgtest.URL(t)
	first, err := openStage(t.Context(), url, &printer{out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := first.close(); err != nil {
			t.Error(err)
		}
	}()
	err = Run(t.Context(), Config{Database: url, Once: true, Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "another demo is running") {
		t.Errorf("%v", err)
	}
}

func TestASchemaThatNoDemoMadeIsNotDropped(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, err := pool.Exec(t.Context(), "CREATE SCHEMA pawl_demo; CREATE TABLE pawl_demo.mine ()"); err != nil {
		t.Fatal(err)
	}
	st, err := openStage(t.Context(), pool.Config().ConnString(), &printer{out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "was not made by this demo") {
		t.Errorf("got %v, %v", st, err)
	}
	if _, err := pool.Exec(t.Context(), "TABLE pawl_demo.mine"); err != nil {
		t.Error(err)
	}
}

// The private server that other programs use is none of the demo's business, whatever
// they call their databases.
func TestTheDemoHasAPrivateServerOfItsOwn(t *testing.T) {
	home, err := os.MkdirTemp("", "demo-test-") // the server's account can enter it
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	}()
	if err := os.Chmod(home, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Setenv(localpg.EnvHome, home)
	theirs, err := localpg.Start(t.Context(), localpg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := theirs.Stop(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := pgx.Connect(t.Context(), theirs.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE pawl_demo"); err != nil {
		t.Fatal(err)
	}
	const made = "SELECT oid::int FROM pg_database WHERE datname = 'pawl_demo'"
	var before, after int
	if err := conn.QueryRow(t.Context(), made).Scan(&before); err != nil {
		t.Fatal(err)
	}
	st, err := openStage(t.Context(), "", &printer{out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.close(); err != nil {
		t.Error(err)
	}
	if err := conn.QueryRow(t.Context(), made).Scan(&after); err != nil || after != before {
		t.Errorf("the database of another program was made anew: %d, %d, %v", before, after, err)
	}
}

// Without Once the service stays up until it is told to end.
func TestDemoStaysUpUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{Database: pgtest.URL(t), Address: "127.0.0.1:0", Events: 100, Out: w})
		_ = w.Close()
	}()
	var out strings.Builder
	buf := make([]byte, 4096)
	for asked := false; ; {
		n, err := r.Read(buf)
		out.Write(buf[:n])
		if _, rest, up := strings.Cut(out.String(), "stays up until"); up && !asked && strings.Contains(rest, " ops inbox list --schema pawl_demo") {
			asked = true
			_, at, _ := strings.Cut(rest, "curl ")
			resp, err := http.Get(strings.Fields(at)[0])
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("explore: %v, %v", resp, err)
			} else if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
			cancel()
		}
		if err != nil {
			break
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A server that does something else than is told ends the story.
func TestWhatIsNotAsToldEndsTheStory(t *testing.T) {
	told := map[string]string{
		"/ledger": `{"a":{"reference":"twice","charges":2},"b":{"reference":"apart","charges":1},
			"c":{"reference":"apart","charges":1},"d":{"reference":"once","charges":1}}`,
		"/events":  `{"events":[]}`,
		"/history": `{"entries":[{"actor":"local","at":"2026-01-01T00:00:00Z"},{"actor":"local","at":"2026-01-01T00:00:01Z"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") == "again" {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		body, ok := told[r.URL.Path]
		if !ok {
			body = `{"state":"paid","n":1,"path":"` + r.URL.Path + `"}`
		}
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	tell := func(xs ...exchange) error {
		s := &story{printer: &printer{out: io.Discard}, url: server.URL, client: server.Client(), answers: map[string]answer{}}
		return s.play(t.Context(), xs)
	}
	asked := exchange{request: post("/a", "first", ""), status: 200, as: "a"}
	for _, tt := range []struct {
		name string
		told exchange
		want string // of the error, "" for none
	}{
		{"status", exchange{request: get("/a"), status: 201}, "the answer is 200, and should be 201"},
		{"member", exchange{request: get("/a"), status: 200, checks: []check{has("state", "placed", "")}}, `"state" is paid, and should be placed`},
		{"number", exchange{request: get("/a"), status: 200, checks: []check{has("n", 1, "")}}, ""},
		{"no member", exchange{request: get("/a"), status: 200, checks: []check{has("gone", 1, "")}}, `no "gone"`},
		{"replay", exchange{request: post("/a", "again", ""), status: 200, checks: []check{replayOf("a")}}, ""},
		{"no replay", exchange{request: post("/a", "first", ""), status: 200, checks: []check{replayOf("a")}}, `Idempotent-Replayed is "", and should be "true"`},
		{"another answer", exchange{request: post("/b", "again", ""), status: 200, checks: []check{replayOf("a")}}, "the replay is"},
		{"not first", exchange{request: post("/a", "again", ""), status: 200, checks: []check{first}}, `Idempotent-Replayed is "true"`},
		{"another row", exchange{request: get("/a"), status: 200, checks: []check{brokenAt("x")}}, `no "broken"`},
		{"charged twice", exchange{request: get("/ledger"), status: 200, checks: []check{books("twice", 1, 0, "")}}, "charged 2 times"},
		{"charged with two keys", exchange{request: get("/ledger"), status: 200, checks: []check{books("apart", 1, 0, "")}}, "with 2 keys"},
		{"not asked to charge", exchange{request: get("/ledger"), status: 200, checks: []check{books("never", 1, 0, "")}}, "with 0 keys"},
		{"charged once", exchange{request: get("/ledger"), status: 200, checks: []check{books("once", 1, 0, "")}}, ""},
		{"no event", exchange{request: get("/events"), status: 200, checks: []check{events(1, "")}}, `"events" is [], and should be 1`},
		{"by a person", exchange{request: get("/history"), status: 200, checks: []check{byTimer(time.Second)}}, "the history is"},
	} {
		err := tell(asked, tt.told)
		switch {
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		case err != nil && !strings.HasPrefix(err.Error(), "step 2 is not as told: "):
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What a second node says when it does not serve is in the error.
func TestSecondNodeThatDoesNotServeEndsTheStory(t *testing.T) {
	bank, err := shop.StartProvider(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bank.Stop(); err != nil {
			t.Error(err)
		}
	}()
	s := &story{printer: &printer{out: io.Discard}, stage: &stage{schema: name}, bank: bank}
	if _, err := s.startNode(t.Context(), "1ms"); err == nil || !strings.Contains(err.Error(), "--lease 1ms is less than a second") {
		t.Errorf("%v", err)
	}
}

// Nobody listens: that is a failure, and not a story without end.
func TestOutputThatCannotBeWrittenEndsTheDemo(t *testing.T) {
	t.Parallel()
	broken := errors.New("the pipe is broken")
	r, w := io.Pipe()
	_ = r.CloseWithError(broken)
	err := Run(t.Context(), Config{Database: pgtest.URL(t), Once: true, Out: w})
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	var plain, painted bytes.Buffer
	(&printer{out: &plain}).received("x")
	(&printer{out: &painted, color: true}).received("x")
	if plain.String() != "     < x\n" || painted.String() != "     \x1b[32m<\x1b[0m x\n" {
		t.Errorf("%q, %q", plain.String(), painted.String())
	}
}
