package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/outbox/sink/file"
	"github.com/pawlhq/pawl/outbox/sink/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
)

// tap counts what a sink takes, and how long after its decision.
type tap struct {
	sink.Sink
	dead bool // it is not expected to take anything

	mu       sync.Mutex
	count    int64
	lag      []time.Duration // of the first and the last event of each call
	delivery []time.Duration // of calls
}

// Deliver hands on.
func (t *tap) Deliver(ctx context.Context, events []transitions.Logged) []*sink.Failure {
	begun := time.Now()
	failures := t.Sink.Deliver(ctx, events)
	now := time.Now()
	if failures != nil {
		return failures // in these scenarios a receiver has all or none
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delivery = append(t.delivery, now.Sub(begun))
	t.lag = append(t.lag, now.Sub(events[0].At), now.Sub(events[len(events)-1].At))
	t.count += int64(len(events))
	return nil
}

// taken is how many events it has taken.
func (t *tap) taken() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// An opener makes a sink, and what receives its events until the round ends.
type opener func(ctx context.Context, e *env) (sink.Sink, error)

func toFile(_ context.Context, e *env) (sink.Sink, error) {
	folder, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return nil, err
	}
	e.later(func() error { return os.RemoveAll(folder) })
	return file.New(file.Config{Path: filepath.Join(folder, "events.ndjson")})
}

// toJetStream makes a stream of its own each time: the positions of every round
// are the same, and so are the ids of the messages, of which a stream takes each
// once.
func toJetStream(_ context.Context, e *env) (sink.Sink, error) {
	name := fmt.Sprintf("BENCH%d", time.Now().UnixNano())
	return jetstream.New(jetstream.Config{URL: e.NATS, Stream: name, Subject: name + ".{tenant}.{type}",
		Duplicates: time.Minute, MaxAge: time.Minute, Log: slog.New(slog.DiscardHandler)})
}

func hook(address string) (sink.Sink, error) {
	return webhook.New(webhook.Config{URL: "http://" + address + "/", Secrets: []signature.Secret{signature.NewSecret()}, PlainHTTP: true,
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
}

// toWebhook has a receiver in this program that takes everything.
func toWebhook(_ context.Context, e *env) (sink.Sink, error) {
	return hook(e.listen(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })))
}

// toNobody is a sink whose receiver is not there: a server that has ended.
func toNobody(context.Context, *env) (sink.Sink, error) {
	server := httptest.NewServer(nil)
	server.Close()
	return hook(server.Listener.Addr().String())
}

// healthy is the number of sinks next to a dead one, which is the last.
const healthy = 3

// following starts an engine with sinks.
func (e *env) following(ctx context.Context, purging bool, open []opener) (eng *engine.Engine, taps []*tap, err error) {
	var c engine.Config
	for i, o := range open {
		to, err := o(ctx, e)
		if err != nil {
			return nil, nil, err
		}
		t := &tap{Sink: to, dead: i == healthy}
		s := relay.Sink{Name: fmt.Sprintf("sink-%d", i), To: t}
		if _, one := to.(*webhook.Sink); one { // it takes one event after the other
			s.Calls, s.Batch = 64, 16
		}
		taps, c.Sinks = append(taps, t), append(c.Sinks, s)
	}
	eng, err = e.engine(ctx, c, purging)
	return eng, taps, err
}

// drainLimit is how long a sink may take for a backlog.
const drainLimit = 3 * time.Minute

// await waits until the sink has taken so many events.
func (t *tap) await(ctx context.Context, n int64) error {
	return poll(ctx, time.Millisecond, drainLimit, fmt.Sprintf("a sink did not get %d events", n),
		func() (bool, error) { return t.taken() >= n, nil })
}

// caughtUp waits until the sinks that are not dead have everything so far, and
// lets them forget how long that took.
func caughtUp(ctx context.Context, eng *engine.Engine, taps []*tap) error {
	head, err := eng.Read().Head(ctx, tenant)
	for _, t := range taps {
		if err == nil && !t.dead {
			err = t.await(ctx, head)
			t.mu.Lock()
			t.lag = nil
			t.mu.Unlock()
		}
	}
	return err
}

// followed adds to a sample what its sinks got that are not dead.
func (s *sample) followed(ctx context.Context, eng *engine.Engine, taps []*tap) error {
	if len(taps) == 0 {
		return nil
	}
	head, err := eng.Read().Head(ctx, tenant)
	if err != nil {
		return err
	}
	var lags []time.Duration
	for _, t := range taps {
		if t.dead {
			continue
		}
		if got := t.taken(); len(lags) == 0 && got < head { // not even a busy machine leaves nothing to say of
			if err := t.await(ctx, got+1); err != nil {
				return err
			}
		}
		t.mu.Lock()
		lags = append(lags, t.lag...)
		t.mu.Unlock()
	}
	s.lag = latencyOf(lags)
	return nil
}

// submittingTo is Submit with 256 callers while a sink follows.
func submittingTo(name string, to opener) *scenario {
	return &scenario{name: name, floor: submitMost, run: func(ctx context.Context, e *env) (*sample, error) {
		eng, taps, err := e.following(ctx, false, []opener{to})
		if err == nil {
			err = caughtUp(ctx, eng, taps)
		}
		if err != nil {
			return nil, err
		}
		s, err := e.drive(ctx, submitters(e, eng, 256, flips))
		if err != nil {
			return nil, err
		}
		return s, s.followed(ctx, eng, taps)
	}}
}

// backlog is how often every order is flipped before a backlog is delivered.
const backlog = 7

// draining is a scenario that delivers what is there when the engine starts, and
// nothing else. Its commands are events.
func draining(name string, to opener) *scenario {
	return &scenario{name: name, floor: submitMost, replays: true, flips: backlog,
		run: func(ctx context.Context, e *env) (*sample, error) {
			head, err := e.db.head(ctx)
			if err != nil {
				return nil, err
			}
			begun := time.Now()
			_, taps, err := e.following(ctx, false, []opener{to})
			if err == nil {
				err = taps[0].await(ctx, head)
			}
			if err != nil {
				return nil, err
			}
			took := time.Since(begun)
			taps[0].mu.Lock()
			defer taps[0].mu.Unlock()
			return &sample{all: head, commands: head, took: took, latency: latencyOf(taps[0].delivery)}, nil
		}}
}

// purgeTimes is how much longer a scenario with a purge is measured: it has many
// batches.
const purgeTimes = 5

// halved is a scenario of 256 callers that submit at half of the rate that they
// reach just before; one that is compared with another, at the rate of that.
func halved(name, floor string, purging bool, to ...opener) *scenario {
	return &scenario{name: name, floor: floor, run: func(ctx context.Context, e *env) (*sample, error) {
		eng, taps, err := e.following(ctx, purging, to)
		if err != nil {
			return nil, err
		}
		list := submitters(e, eng, 256, flips)
		peak, err := e.drive(ctx, list)
		if err != nil {
			return nil, err
		}
		if floor == "" || e.half == 0 {
			e.half = peak.rate() / 2
		}
		warm, err := phase(ctx, list, e.half, e.Duration/5)
		if err = errors.Join(err, caughtUp(ctx, eng, taps)); err != nil {
			return nil, err
		}
		before, timed := purgedBy(eng), e.Duration
		if purging {
			timed *= purgeTimes
		}
		m, err := phase(ctx, list, e.half, timed)
		if err != nil {
			return nil, err
		}
		m.purges, m.purged = purging, float64(purgedBy(eng)-before)/m.took.Seconds()
		m.all += peak.all + warm.all
		return m, m.followed(ctx, eng, taps)
	}}
}

// purgedBy is how many commands an engine has ended so far.
func purgedBy(eng *engine.Engine) int64 {
	s := eng.Admin().RetentionStats()
	return s.Expired + s.Forgotten
}
