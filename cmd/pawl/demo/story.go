package demo

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/shop"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inbox/signature"
)

// story is what has been told so far.
type story struct {
	*printer
	url     string // of the service
	engine  *engine.Engine
	stage   *stage
	bank    *shop.Provider   // where orders are paid
	books   *bookkeeping     // which is told of them
	secret  signature.Secret // what the bank signs its notices with
	client  *http.Client
	steps   int               // counts what was told
	answers map[string]answer // that later exchanges are compared with
}

func newStory(service *pawl.Service, st *stage, bank *shop.Provider, books *bookkeeping, secret signature.Secret, p *printer) *story {
	return &story{
		printer: p, url: service.URL(), engine: service.Engine(), stage: st, bank: bank, books: books, secret: secret, answers: map[string]answer{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd}},
	}
}

// exchange is one request of the story and the answer that it must get.
type exchange struct {
	tell    string
	request request
	status  int
	as      string // the name by which later exchanges refer to the answer, or ""
	checks  []check
}

// request is an HTTP request. Its header lines are in the order in which they
// are shown; a request with a body is of JSON.
type request struct {
	method, path string
	host         string   // "" is the service, else another one's URL
	header       []string // name, value, name, value
	body         string
}

// answer is a whole HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func get(path string) request { return request{method: http.MethodGet, path: path} }

// post is a command with an idempotency key.
func post(path, key, body string) request {
	return request{method: http.MethodPost, path: path, header: []string{"Idempotency-Key", key}, body: body}
}

// with adds a header line.
func (r request) with(name, value string) request {
	r.header = append(append([]string{}, r.header...), name, value)
	return r
}

// to sends the request to another host, by its URL.
func (r request) to(host string) request {
	r.host = host
	return r
}

// play tells exchanges one after the other.
func (s *story) play(ctx context.Context, exchanges []exchange) error {
	for _, x := range exchanges {
		s.narrate(x.tell)
		s.showRequest(x.request)
		if s.err != nil {
			return s.err // nobody listens any more
		}
		a, err := s.send(ctx, x.request)
		if err != nil {
			return s.failed(err)
		}
		s.showAnswer(a)
		if a.status != x.status {
			return s.failed(fmt.Errorf("the answer is %d, and should be %d: %s", a.status, x.status, a.body))
		}
		if err := s.check(a, x.checks); err != nil {
			return s.failed(err)
		}
		if x.as != "" {
			s.answers[x.as] = a
		}
	}
	return nil
}

func (s *story) narrate(text string) {
	s.steps++
	s.tell(s.steps, text)
}

func (s *story) failed(err error) error {
	return fmt.Errorf("step %d is not as told: %w", s.steps, err)
}

func (s *story) check(a answer, checks []check) error {
	for _, c := range checks {
		if err := c.holds(s, a); err != nil {
			return err
		}
		if c.says != "" {
			s.held("%s", c.says)
		}
	}
	return nil
}

// send sends a request and reads the answer to its end.
func (s *story) send(ctx context.Context, r request) (a answer, err error) {
	resp, err := s.begin(ctx, r)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body}, err
}

// begin sends a request and leaves the answer to be read.
func (s *story) begin(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, cmp.Or(r.host, s.url)+r.path, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if r.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(r.header); i += 2 {
		req.Header.Set(r.header[i], r.header[i+1])
	}
	return s.client.Do(req)
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

// shown are the header lines of an answer that the story is about.
var shown = []string{"Location", "ETag", "Pawl-Position", "Idempotent-Replayed", "Pawl-Dry-Run", "Retry-After", "Preference-Applied"}

func (s *story) showAnswer(a answer) {
	s.received("%d %s", a.status, http.StatusText(a.status))
	for _, name := range shown {
		if value := a.header.Get(name); value != "" {
			s.received("%s: %s", name, value)
		}
	}
	s.received("%s", bytes.TrimSpace(a.body))
}
