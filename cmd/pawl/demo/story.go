package demo

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/shop"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
)

// story is what has been told so far. What is not as told, or cannot be written,
// is its error, after which nothing is done or told any more.
type story struct {
	*printer
	stage   *stage
	bank    *shop.Provider   // where orders are paid
	books   *bookkeeping     // which is told of them
	secret  signature.Secret // what the bank signs its notices with
	service *pawl.Service
	url     string // of the service

	guardedURL string // of the node that asks who calls; "" before there is one

	ends   []func() error
	client *http.Client
	steps  int // counts what was told
}

// patience bounds every wait.
const patience = time.Minute

// fail ends the story.
func (s *story) fail(err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("step %d is not as told: %w", s.steps, err)
	}
}

func (s *story) narrate(text string) {
	s.steps++
	s.tell(s.steps, text)
}

// until polls for a condition without a notification, for a bounded time.
func (s *story) until(ctx context.Context, what string, met func() bool) {
	for begun := time.Now(); s.err == nil && !met(); {
		if time.Since(begun) > patience {
			s.fail(fmt.Errorf("%s: not within %v", what, patience))
		} else if !backoff.Sleep(ctx, 5*time.Millisecond) {
			s.fail(ctx.Err())
		}
	}
}

// request is an HTTP request. Its header lines are in the order in which they are shown; a request with a body is of JSON.
type request struct {
	method, path string
	host         string   // "" is the service, else another one's URL
	header       []string // name, value, name, value
	body         string
}

func get(path string) request { return request{method: http.MethodGet, path: path} }

// post is a command with an idempotency key.
func post(path, key, body string) request {
	return request{method: http.MethodPost, path: path, header: []string{"Idempotency-Key", key}, body: body}
}

// with adds header lines: name, value, name, value.
func (r request) with(lines ...string) request {
	r.header = append(append([]string{}, r.header...), lines...)
	return r
}

// to sends the request to another host, by its URL.
func (r request) to(host string) request {
	r.host = host
	return r
}

// answer is a whole HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// check is something that must hold of an answer.
type check struct {
	says  string // told when it holds, "" where the answer says it itself
	holds func(answer) error
}

// ask prints a request and checks its answer.
func (s *story) ask(ctx context.Context, tell string, r request, status int, checks ...check) answer {
	s.narrate(tell)
	s.showRequest(r)
	a := s.send(ctx, r)
	if s.err != nil {
		return a
	}
	s.received("%d %s", a.status, http.StatusText(a.status))
	for _, name := range []string{"Location", "ETag", "Pawl-Position", "Idempotent-Replayed", "Pawl-Dry-Run", "Retry-After",
		"Preference-Applied"} {
		if value := a.header.Get(name); value != "" {
			s.received("%s: %s", name, value)
		}
	}
	s.received("%s", bytes.TrimSpace(a.body))
	if a.status != status {
		s.fail(fmt.Errorf("the answer is %d, and should be %d: %s", a.status, status, a.body))
	}
	for _, c := range checks {
		if s.fail(c.holds(a)); c.says != "" {
			s.held("%s", c.says)
		}
	}
	return a
}

// send sends a request and reads the answer to its end.
func (s *story) send(ctx context.Context, r request) (a answer) {
	if s.err != nil {
		return answer{}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, cmp.Or(r.host, s.url)+r.path, strings.NewReader(r.body))
	if err != nil {
		s.fail(err)
		return answer{}
	}
	if r.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(r.header); i += 2 {
		req.Header.Set(r.header[i], r.header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.fail(err)
		return answer{}
	}
	body, err := io.ReadAll(resp.Body)
	s.fail(cmp.Or(err, resp.Body.Close()))
	return answer{resp.StatusCode, resp.Header, body}
}

func (s *story) showRequest(r request) {
	s.sent("%s %s%s", r.method, r.host, r.path)
	for i := 0; i < len(r.header); i += 2 {
		s.sent("%s: %s", r.header[i], r.header[i+1])
	}
	if r.body != "" {
		s.sent("%s", r.body)
	}
}

// first asks that the answer is not a replay.
var first = header("Idempotent-Replayed", "", "done now, for the first time")

// replayOf asks for a stored answer, byte for byte.
func replayOf(stored answer) check {
	return check{"a replay: the stored answer, byte for byte", func(a answer) error {
		if err := header("Idempotent-Replayed", "true", "").holds(a); err != nil {
			return err
		}
		if a.status != stored.status || !bytes.Equal(a.body, stored.body) {
			return fmt.Errorf("the replay is %d %s, and was %d %s", a.status, a.body, stored.status, stored.body)
		}
		return nil
	}}
}

// header asks for a header line.
func header(name, want, says string) check {
	return check{says, func(a answer) error {
		if got := a.header.Get(name); got != want {
			return fmt.Errorf("the header %s is %q, and should be %q", name, got, want)
		}
		return nil
	}}
}

// has checks the value at a path of the answer's JSON, such as "events.0.id"; "events.#" is the number of events.
func has(path string, want any, says string) check {
	return check{says, func(a answer) error {
		if got := a.at(path); got != fmt.Sprint(want) {
			return fmt.Errorf("%q is %v, and should be %v: %s", path, got, want, a.body)
		}
		return nil
	}}
}

// at returns the text at a path of the answer's JSON, or "".
func (a answer) at(path string) string {
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		return ""
	}
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			switch {
			case name == "#":
				v = len(in)
			case err == nil && i < len(in):
				v = in[i]
			default:
				return ""
			}
		default:
			return ""
		}
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
