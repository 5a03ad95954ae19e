// Package notify exchanges notifications between the nodes of one database: a log has grown, commands have changed, other nodes should
// poll for work, a sink can be claimed or has changed, the default version of a workflow has changed.
//
// Notifications only speed up polling. They can be lost, late or repeated; receivers read the tables.
//
// NOTIFY takes a lock of the whole database at commit. So it is never part of another transaction, and the notifications of a short
// interval are sent in one statement. A dedicated connection listens.
package notify

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/workflow"
)

// Config configures an exchange. All fields except Off are required.
type Config struct {
	Pool    *pgxpool.Pool                                             // sends
	Connect func(ctx context.Context, name string) (*pgx.Conn, error) // connects the listener; name is its application_name
	Channel string                                                    // of NOTIFY
	Log     *slog.Logger
	Off     bool // neither send nor listen
}

// Listener handles the notifications of other nodes. One goroutine calls it; its functions should not block.
type Listener struct {
	Head    func(tenant string, head int64) // a log has grown
	Changed func(commands []uint64)         // commands have changed, by [transitions.Ref.Hash]
	Due     func()                          // there is work that another node cannot take
	Sinks   func()                          // a sink was released or changed
	Begins  func()                          // the default version of a workflow has changed; optional
}

// sendTimeout bounds a send: by then all nodes have polled. Only tests, which do not poll, wait longer.
var sendTimeout = time.Second

const (
	sendInterval = 20 * time.Millisecond // minimum between two sends
	maxPending   = 1 << 16               // changed commands; other nodes find further ones by polling
)

// Exchange exchanges notifications with other nodes.
type Exchange struct {
	config Config
	node   string // identifies the exchange's own notifications
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	pending pending
	wake    chan struct{} // one token, if anything is pending
}

// pending are the notifications to send.
type pending struct {
	heads    map[string]int64
	commands []uint64 // with repetitions
	due      bool
	sinks    bool
	begins   bool
}

// New returns an exchange; Start starts it.
func New(c Config) *Exchange {
	x := &Exchange{config: c, node: rand.Text(), wake: make(chan struct{}, 1)}
	x.ctx, x.stop = context.WithCancel(context.Background())
	return x
}

// Start starts to send and to listen.
func (x *Exchange) Start(l Listener) {
	if x.config.Off {
		return
	}
	x.work.Go(x.sendLoop)
	x.work.Go(func() { x.listenLoop(l) })
}

// Stop sends pending notifications and waits for all work. It may be called twice.
func (x *Exchange) Stop() {
	x.stop()
	x.work.Wait()
	x.Flush()
}

// Head notifies other nodes that a tenant's log has grown to head. Like the methods below it does not block.
func (x *Exchange) Head(tenant string, head int64) {
	x.add(func(p *pending) {
		if p.heads == nil {
			p.heads = map[string]int64{}
		}
		p.heads[tenant] = max(p.heads[tenant], head)
	})
}

// Changed notifies other nodes of changed commands, by [transitions.Ref.Hash].
func (x *Exchange) Changed(commands []uint64) {
	x.add(func(p *pending) {
		p.commands = append(p.commands, commands[:min(len(commands), maxPending-len(p.commands))]...)
	})
}

// Due notifies other nodes of work that this node cannot take.
func (x *Exchange) Due() { x.add(func(p *pending) { p.due = true }) }

// Sinks notifies other nodes of a released or changed sink.
func (x *Exchange) Sinks() { x.add(func(p *pending) { p.sinks = true }) }

// Begins notifies other nodes of another default version of a workflow.
func (x *Exchange) Begins() { x.add(func(p *pending) { p.begins = true }) }

func (x *Exchange) add(note func(*pending)) {
	if x.config.Off {
		return
	}
	x.mu.Lock()
	note(&x.pending)
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Flush sends pending notifications, also before Start. They are lost on an error.
func (x *Exchange) Flush() {
	payloads := x.takePending().payloads(x.node)
	if len(payloads) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout) // Stop waits for it
	defer cancel()
	_, err := x.config.Pool.Exec(ctx, "SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p", x.config.Channel, payloads)
	if err != nil {
		x.config.Log.Warn("cannot notify other nodes; they will find out by polling", "error", err)
	}
}

func (x *Exchange) takePending() pending {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.pending
	x.pending = pending{}
	return p
}

func (x *Exchange) sendLoop() {
	for {
		select {
		case <-x.wake:
		case <-x.ctx.Done():
			return
		}
		x.Flush()
		if !backoff.Sleep(x.ctx, sendInterval) {
			return
		}
	}
}

var listenRetry = workflow.Retry{First: 200 * time.Millisecond, Max: 5 * time.Second}

// listenLoop listens and reconnects with a backoff.
func (x *Exchange) listenLoop(l Listener) {
	for failures := 1; ; failures++ {
		started := time.Now()
		err := x.listen(l)
		if x.ctx.Err() != nil {
			return
		}
		x.config.Log.Warn("cannot listen for notifications of other nodes; polling instead", "error", err)
		if time.Since(started) > time.Minute {
			failures = 1
		}
		if !backoff.Sleep(x.ctx, 100*time.Millisecond+backoff.Delay(listenRetry, failures)) {
			return
		}
	}
}

func (x *Exchange) listen(l Listener) error {
	conn, err := x.config.Connect(x.ctx, "pawl listener")
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(x.ctx, "LISTEN "+pgx.Identifier{x.config.Channel}.Sanitize()); err != nil {
		return err
	}
	for {
		received, err := conn.WaitForNotification(x.ctx)
		if err != nil {
			return err
		}
		if n, ok := parse(received.Payload); ok && n.node != x.node {
			n.deliver(l)
		}
	}
}
