package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/pause"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/outbox/sink/file"
	"github.com/pawlhq/pawl/outbox/sink/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
)

// The scenarios of the relay, and those that they are compared with.
const (
	drainFile    = "relay: a backlog to a file"
	drainStream  = "relay: a backlog to JetStream"
	drainWebhook = "relay: a backlog to a webhook"
	followFile   = "Submit: 256 callers, a file follows"
	followStream = "Submit: 256 callers, JetStream follows"
	threeSinks   = "Submit at half, three files follow"
	besideDead   = "Submit at half, and a dead webhook"
)

// relayScenarios need a NATS server for those that are about JetStream.
func relayScenarios(nats bool) []*scenario {
	list := []*scenario{
		draining(drainFile, toFile),
		draining(drainWebhook, toWebhook),
		submittingTo(followFile, toFile),
		halved(threeSinks, "", 256, company{sinks: []opener{toFile, toFile, toFile}}),
		halved(besideDead, threeSinks, 256, company{sinks: []opener{toFile, toFile, toFile, toNobody}}),
	}
	if nats {
		list = append(list, draining(drainStream, toJetStream), submittingTo(followStream, toJetStream))
	}
	return list
}

// tap counts what a sink takes, and how long after its decision.
type tap struct {
	sink.Sink
	end   func() error // of what was opened for it
	dead  bool         // it is not expected to take anything
	count atomic.Int64

	mu       sync.Mutex
	lag      *histogram // of the first and the last event of each call
	delivery *histogram // of calls
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
	t.delivery.add(now.Sub(begun))
	t.lag.add(now.Sub(events[0].At))
	t.lag.add(now.Sub(events[len(events)-1].At))
	t.count.Add(int64(len(events)))
	return nil
}

// An opener makes a sink, and what receives its events.
type opener func(e *env) (*tap, error)

func newTap(to sink.Sink, end func() error) *tap {
	return &tap{Sink: to, end: end, lag: newHistogram(), delivery: newHistogram()}
}

// delivered is how many deliveries were measured.
func (t *tap) delivered() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lag.n
}

func toFile(*env) (*tap, error) {
	folder, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return nil, err
	}
	end := func() error { return os.RemoveAll(folder) }
	to, err := file.New(file.Config{Path: filepath.Join(folder, "events.ndjson")})
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return newTap(to, end), nil
}

// toJetStream makes a stream of its own each time: the positions of every round
// are the same, and so are the ids of the messages, of which a stream takes each
// once.
func toJetStream(e *env) (*tap, error) {
	name := fmt.Sprintf("BENCH%d", time.Now().UnixNano())
	to, err := jetstream.New(jetstream.Config{URL: e.nats, Stream: name, Subject: name + ".{tenant}.{workflow}.{type}",
		Duplicates: time.Minute, MaxAge: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return newTap(to, func() error { return nil }), nil
}

func hook(address string, end func() error) (*tap, error) {
	to, err := webhook.New(webhook.Config{URL: "http://" + address + "/", Secrets: []signature.Secret{signature.NewSecret()}, PlainHTTP: true,
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return newTap(to, end), nil
}

// toWebhook has a receiver in this program that takes everything.
func toWebhook(*env) (*tap, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })}
	var work sync.WaitGroup
	work.Go(func() { _ = server.Serve(listener) }) // it says that it was closed
	return hook(listener.Addr().String(), func() error {
		err := server.Close()
		work.Wait()
		return err
	})
}

// toNobody is a webhook whose receiver is not there.
func toNobody(*env) (*tap, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if err := listener.Close(); err != nil {
		return nil, err
	}
	t, err := hook(listener.Addr().String(), func() error { return nil })
	if err == nil {
		t.dead = true
	}
	return t, err
}

// company is who is there beside the callers.
type company struct {
	sinks   []opener
	purging bool
}

// engineWith starts an engine in company. end ends that too.
func (e *env) engineWith(ctx context.Context, with company) (eng *engine.Engine, taps []*tap, end func() error, err error) {
	stop := func() {}
	end = func() (err error) {
		stop()
		for _, t := range taps {
			err = errors.Join(err, t.end())
		}
		return err
	}
	var c engine.Config
	for i, open := range with.sinks {
		t, err := open(e)
		if err != nil {
			return nil, nil, nil, errors.Join(err, end())
		}
		taps = append(taps, t)
		s := relay.Sink{Name: fmt.Sprintf("sink-%d", i), To: t}
		if _, one := t.Sink.(*webhook.Sink); one { // it takes one event after the other
			s.Calls, s.Batch = 64, 16
		}
		c.Sinks = append(c.Sinks, s)
	}
	if eng, stop, err = e.engine(ctx, c, with.purging); err != nil {
		stop = func() {}
		return nil, nil, nil, errors.Join(err, end())
	}
	return eng, taps, end, nil
}

// followed adds to a sample what its sinks got, and how much was yet to come for
// those that are not dead.
func (s *sample) followed(ctx context.Context, eng *engine.Engine, taps []*tap) error {
	if len(taps) == 0 {
		return nil
	}
	head, err := eng.Head(ctx, tenant)
	if err != nil {
		return err
	}
	s.relayed = &relayed{lag: newHistogram()}
	for _, t := range taps {
		if t.dead {
			continue
		}
		got := t.count.Load()
		s.relayed.behind = max(s.relayed.behind, head-got)
		if t.delivered() == 0 { // not even a busy machine leaves nothing to say of
			if err := t.await(ctx, got+1); err != nil {
				return err
			}
		}
		t.mu.Lock()
		s.relayed.lag.merge(t.lag)
		t.mu.Unlock()
	}
	return nil
}

// relayed is what the sinks beside a scenario got.
type relayed struct {
	lag    *histogram // from the decision of a transition to the end of its delivery
	behind int64      // events that one had not got in the end, at most
}

// submittingTo is Submit with 256 callers while a sink follows.
func submittingTo(name string, to opener) *scenario {
	return &scenario{name: name, section: theRelay, floor: submitMost, run: func(ctx context.Context, e *env) (_ *sample, err error) {
		eng, taps, end, err := e.engineWith(ctx, company{sinks: []opener{to}})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
		if err := caughtUp(ctx, eng, taps); err != nil {
			return nil, err
		}
		s, err := drive(ctx, submitters(e, eng, 256), e.phases)
		if err != nil {
			return nil, err
		}
		return s, s.followed(ctx, eng, taps)
	}}
}

// caughtUp waits until the sinks that are not dead have what was prepared, and
// lets them forget how long that took.
func caughtUp(ctx context.Context, eng *engine.Engine, taps []*tap) error {
	if len(taps) == 0 {
		return nil
	}
	head, err := eng.Head(ctx, tenant)
	if err != nil {
		return err
	}
	for _, t := range taps {
		if t.dead {
			continue
		}
		if err := t.await(ctx, head); err != nil {
			return err
		}
		t.mu.Lock()
		t.lag = newHistogram()
		t.mu.Unlock()
	}
	return nil
}

// drainLimit is how long a sink may take for a backlog.
const drainLimit = time.Minute

// await waits until the sink has taken so many events.
func (t *tap) await(ctx context.Context, n int64) error {
	for begun := time.Now(); t.count.Load() < n; {
		if time.Since(begun) > drainLimit {
			return fmt.Errorf("a sink got %d of %d events in %v", t.count.Load(), n, drainLimit)
		}
		if !pause.For(ctx, time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// backlog is how often every order is flipped before a backlog is delivered.
const backlog = 7

// draining is a scenario that delivers what is there when the engine starts, and
// nothing else. Its commands are events.
func draining(name string, to opener) *scenario {
	return &scenario{name: name, section: theRelay, floor: submitMost, replays: true, flips: backlog, run: func(ctx context.Context, e *env) (_ *sample, err error) {
		head, err := e.db.head(ctx)
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		_, taps, end, err := e.engineWith(ctx, company{sinks: []opener{to}})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
		if err := taps[0].await(ctx, head); err != nil {
			return nil, err
		}
		took := time.Since(begun)
		taps[0].mu.Lock()
		defer taps[0].mu.Unlock()
		return &sample{all: head, commands: head, took: took, latency: taps[0].delivery}, nil
	}}
}
