package feed

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// notifier exchanges hints with other nodes. A notification never rides in a
// transition's transaction: NOTIFY takes a lock of the whole database at commit.
type notifier struct {
	f    *Feed
	node string // tells our own notifications from others'

	mu    sync.Mutex
	heads map[string]int64 // the heads that others have not been told of
	some  chan struct{}    // one token
}

func newNotifier(f *Feed) *notifier {
	return &notifier{f: f, node: uuid.NewString(), heads: map[string]int64{}, some: make(chan struct{}, 1)}
}

// mark notes a commit that others should hear of.
func (n *notifier) mark(tenant string, head int64) {
	if n.f.config.Suppress {
		return
	}
	n.mu.Lock()
	n.heads[tenant] = max(n.heads[tenant], head)
	n.mu.Unlock()
	select {
	case n.some <- struct{}{}:
	default:
	}
}

// send tells others, at most once in a while, of all commits since.
func (n *notifier) send() {
	for {
		select {
		case <-n.some:
		case <-n.f.ctx.Done():
			return
		}
		n.mu.Lock()
		heads := n.heads
		n.heads = map[string]int64{}
		n.mu.Unlock()
		if err := n.tell(heads); err != nil && n.f.ctx.Err() == nil {
			n.f.config.Logger.Warn("cannot notify other nodes; they will find out by polling", "error", err)
		}
		if !sleep(n.f.ctx, notifyGap) {
			return
		}
	}
}

// tell sends one notification for each tenant, in one statement.
func (n *notifier) tell(heads map[string]int64) error {
	payloads := make([]string, 0, len(heads))
	for tenant, head := range heads {
		payloads = append(payloads, n.node+" "+strconv.FormatInt(head, 10)+" "+tenant)
	}
	ctx, cancel := context.WithTimeout(n.f.ctx, readBudget)
	defer cancel()
	_, err := n.f.config.Pool.Exec(ctx, "SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p", n.f.config.Channel, payloads)
	return err
}

// listen hears of other nodes' commits, over a connection of its own.
func (n *notifier) listen() {
	for wait := time.Duration(0); sleep(n.f.ctx, wait); wait = min(2*wait+100*time.Millisecond, 5*time.Second) {
		begun := time.Now()
		err := n.hear()
		if n.f.ctx.Err() != nil {
			return
		}
		n.f.config.Logger.Warn("cannot hear notifications; polling instead", "error", err)
		if time.Since(begun) > time.Minute {
			wait = 0
		}
	}
}

func (n *notifier) hear() error {
	conn, err := n.f.config.Connect(n.f.ctx, "pawl listener")
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = conn.Close(ctx) // it is given up
	}()
	if _, err := conn.Exec(n.f.ctx, "LISTEN "+pgx.Identifier{n.f.config.Channel}.Sanitize()); err != nil {
		return err
	}
	for {
		heard, err := conn.WaitForNotification(n.f.ctx)
		if err != nil {
			return err
		}
		node, rest, _ := strings.Cut(heard.Payload, " ")
		head, tenant, _ := strings.Cut(rest, " ")
		if position, err := strconv.ParseInt(head, 10, 64); err == nil && node != n.node {
			n.f.wake(tenant, position)
		}
	}
}

// sleep reports false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
