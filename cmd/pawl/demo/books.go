package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
)

// bookkeeping is another system, which is told of the orders by webhook.
type bookkeeping struct {
	address string
	secret  signature.Secret
	stop    func() error

	mu      sync.Mutex
	refuses string            // the type of the events that it refuses
	refused []string          // their ids
	entries map[string]string // types by id
	changed chan struct{}     // closed and made anew with every message
}

// startBookkeeping serves it on a loopback port of its own. ctx bounds only the
// start. Call stop when done.
func startBookkeeping(ctx context.Context) (*bookkeeping, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	b := &bookkeeping{address: listener.Addr().String(), secret: signature.NewSecret(), entries: map[string]string{}, changed: make(chan struct{})}
	server := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	b.stop = sync.OnceValue(func() error {
		err := server.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	})
	return b, nil
}

// sink delivers the events of orders to it.
func (b *bookkeeping) sink() (relay.Sink, error) {
	to, err := webhook.New(webhook.Config{
		URL: "http://" + b.address + "/orders", Secrets: []signature.Secret{b.secret}, PlainHTTP: true,
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		return relay.Sink{}, err
	}
	return relay.Sink{Name: "books", To: to, Batch: 4, Calls: 32, Filter: transitions.EventFilter{Workflow: "order"}}, nil
}

// ServeHTTP takes one event. One that came before is taken once.
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
	var event struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "no event", http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() {
		close(b.changed)
		b.changed = make(chan struct{})
	}()
	if event.Type == b.refuses {
		b.refused = append(b.refused, id)
		http.Error(w, "there is no account for it", http.StatusUnprocessableEntity)
		return
	}
	b.entries[id] = event.Type
}

// refuse lets it refuse events of a type; "" is none.
func (b *bookkeeping) refuse(kind string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = kind
}

// known is how many events it has.
func (b *bookkeeping) known() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)
}

// until waits for what messages bring about.
func (b *bookkeeping) until(ctx context.Context, what string, met func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		b.mu.Lock()
		done, changed := met(), b.changed
		b.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the bookkeeping: %s: %w", what, ctx.Err())
		}
	}
}
