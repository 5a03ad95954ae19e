package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/shop"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
)

// notice is the chapter about messages that come in.
func (s *story) notice(ctx context.Context) {
	s.title("A message from outside")
	const body = `{"type":"payment.abandoned","data":{"reference":"c-1:k-13","reason":"left the page"}}`
	signed := message("msg-1", body, s.secret)
	s.another(ctx, "k-13")
	noticed := s.ask(ctx, "Its customer leaves the provider's page without paying. The provider tells so with a\n"+
		"webhook, signed as Standard Webhooks says. The workflow declares that this cancels the order.",
		signed, 200, first, has("state", "cancelled", ""))
	s.ask(ctx, "A sender that has no answer sends its message again. A message is a command: its id is the key.",
		signed, 200, replayOf(noticed))
	s.ask(ctx, "Messages are public; those without the secret's signature are refused.",
		message("msg-2", body, signature.NewSecret()), 401, has("code", "unauthorized", "not even the database was asked"))
	s.ask(ctx, "A message that has the id of another one is a mistake of its sender ...",
		message("msg-1", strings.Replace(body, "k-13", "k-9", 1), s.secret), 422, has("code", "message_reused", ""))
	s.ask(ctx, "... and waits for an operator, on the list of dead messages.",
		get("/v1/ops/inbox?consumer="+order.PaymentNotices), 200, has("messages.#", 1, "one message is on the list"))
}

// message is one of the payment provider.
func message(id, body string, secret signature.Secret) request {
	h := http.Header{}
	signature.Sign([]signature.Secret{secret}, h, id, time.Now(), []byte(body))
	r := request{method: http.MethodPost, path: "/v1/inbox/" + order.PaymentNotices, body: body}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		r = r.with(name, h.Get(name))
	}
	return r
}

// bookkeeping is another system that receives orders by webhook, and ignores repeated events.
type bookkeeping struct {
	url    string
	secret signature.Secret
	stop   func() error

	mu      sync.Mutex
	refuses string            // what is in the events that it refuses; "" is none
	refused []string          // their ids
	entries map[string]string // events by id
}

// startBookkeeping serves it. ctx bounds only the start. Call stop when done.
func startBookkeeping(ctx context.Context) (b *bookkeeping, err error) {
	b = &bookkeeping{secret: signature.NewSecret(), entries: map[string]string{}}
	b.url, b.stop, err = shop.Listen(ctx, b)
	return b, err
}

// sink delivers the events of orders to it.
func (b *bookkeeping) sink() (relay.Sink, error) {
	to, err := webhook.New(webhook.Config{URL: b.url + "/orders", Secrets: []signature.Secret{b.secret}, PlainHTTP: true,
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	return relay.Sink{Name: "books", To: to, Batch: 4, Calls: 32, Filter: transitions.EventFilter{Workflow: "order"}}, err
}

func (b *bookkeeping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "not read", http.StatusBadRequest)
		return
	}
	id, err := signature.Verify([]signature.Secret{b.secret}, r.Header, body, time.Now(), signature.Tolerance)
	if err != nil {
		http.Error(w, "not signed", http.StatusUnauthorized)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuses != "" && strings.Contains(string(body), b.refuses) {
		b.refused = append(b.refused, id)
		http.Error(w, "it has no account", http.StatusUnprocessableEntity)
		return
	}
	b.entries[id] = string(body)
}

// refuse makes it refuse events of a type; "" means none.
func (b *bookkeeping) refuse(kind string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = kind
}

// delivery is the chapter about another system that wants to know.
func (s *story) delivery(ctx context.Context) {
	s.title("Somebody else's system")
	const sink = "/v1/ops/sinks/books"
	s.until(ctx, "the bookkeeping is up to date", func() bool {
		sinks, err := s.service.Engine().Admin().Sinks(ctx, "")
		s.fail(err)
		return len(sinks) == 1 && sinks[0].Lag == 0
	})
	s.narrate("A bookkeeping gets every event of the orders by webhook, signed, at least once and in\n" +
		"the order of each. Now it has a fault, and refuses what is cancelled.")
	s.books.refuse(`"type":"order.cancel"`)
	s.another(ctx, "k-14")
	s.ask(ctx, "... which is cancelled.", post("/v1/workflows/order/keys/c-1:k-14/cancel", "cancel-14", `{"reason":"a mistake"}`), 200, first)
	s.until(ctx, "what is refused is stored", func() bool { return s.send(ctx, get(sink+"/dead")).at("dead.#") == "1" })
	s.ask(ctx, "It said 422, so asking again would not help: the event is a dead letter. Nothing waits for it.",
		get(sink+"/dead"), 200, has("dead.#", 1, "one event waits for an operator"))
	s.books.refuse("")
	s.ask(ctx, "The bookkeeping is mended, and an operator lets the event be delivered again.",
		request{method: http.MethodPost, path: sink + "/redrive", body: `{"all":true,"reason":"the account is there now"}`}, 200,
		has("changed", 1, ""))
	s.until(ctx, "the event arrives", func() bool {
		s.books.mu.Lock()
		defer s.books.mu.Unlock()
		return s.books.entries[s.books.refused[0]] != ""
	})
	if s.err == nil {
		s.held("it arrived, with the id that it had the first time: %s", s.books.refused[0])
	}
}

// death is the chapter about a lost worker whose effect is unknown.
func (s *story) death(ctx context.Context) {
	s.title("A worker that dies")
	charge := newHold()
	defer charge.release()
	s.bank.Misbehave(func(r provider.Request) provider.Behaviour {
		if r.Op == provider.OpCharge && r.N == 1 {
			charge.wait()
		}
		return provider.Behaviour{}
	})
	defer s.bank.Misbehave(nil)
	s.narrate("A second node on the same database: this program again, as a process of its own.\n" +
		"It holds its work for three seconds without a sign of life; the default is 30.")
	url, kill, err := s.startNode(ctx, "3s")
	if err != nil {
		s.fail(err)
		return
	}
	defer kill()
	s.another(ctx, "k-12")
	pay := post("/v1/workflows/order/keys/c-1:k-12/pay", "pay-1", card)
	dying := s.ask(ctx, "It is asked to take a payment.", pay.to(url), 202, first, has("status", "processing", ""))
	s.until(ctx, "the charge comes to the provider", charge.came.Load)
	s.narrate("The charge is at the provider, and the node is killed (SIGKILL): it cannot say a word.")
	kill()
	charge.release()
	s.ask(ctx, "A caller that waits at the first node sees a worker there take the payment over when the three\n"+
		"seconds are over, and the log warns of it. The worker asks whether the charge has happened.",
		pay.with("Prefer", "wait=60"), 200, has("state", "paid", ""))
	s.ask(ctx, "How did it go?", get(dying.header.Get("Location")), 200,
		has("status", "succeeded", ""), has("attempt", 2, ""), has("failures", 1, "done by the second attempt"))
	s.ledger(ctx, "Was the customer charged twice?", "c-1:k-12", 1, 0, "c-1:k-12 was charged once")
}

// startNode runs this program's command serve, with a lease, in a process of its own, and returns when it serves. kill ends it with SIGKILL
// and may be called twice.
func (s *story) startNode(ctx context.Context, lease string) (url string, kill func(), err error) {
	args := []string{"serve", "--address", "127.0.0.1:0", "--schema", name, "--payments", s.bank.URL(), "--lease", lease}
	s.sent("pawl %s", strings.Join(args, " "))
	c, err := s.self(ctx, args...)
	if err != nil {
		return "", nil, err
	}
	log, err := c.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	kill = sync.OnceFunc(func() {
		_ = c.Process.Kill() // it may be gone already
		_, _ = io.Copy(io.Discard, log)
		_ = c.Wait() // returns that it was killed
	})
	var said []string
	for lines := bufio.NewScanner(log); lines.Scan(); {
		said = append(said, lines.Text())
		if _, rest, ok := strings.Cut(lines.Text(), "msg=serving url="); ok {
			url = strings.Fields(rest)[0]
			s.received("serving at %s, process %d", url, c.Process.Pid)
			return url, kill, nil
		}
	}
	kill()
	return "", nil, errors.New("the second node does not serve: " + strings.Join(said, "; "))
}

// self is this program with other arguments, as a process of its own on the same database.
func (s *story) self(ctx context.Context, args ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), "DATABASE_URL="+s.stage.url)
	return c, nil
}

// pawl runs an operator command and returns its output.
func (s *story) pawl(ctx context.Context, args ...string) string {
	if s.err != nil {
		return ""
	}
	args = append(args, "--schema", name)
	s.sent("pawl %s", strings.Join(args, " "))
	c, err := s.self(ctx, args...)
	if err != nil {
		s.fail(err)
		return ""
	}
	text, err := c.Output()
	if failed, is := errors.AsType[*exec.ExitError](err); is {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	s.fail(err)
	return strings.TrimSpace(string(text))
}
