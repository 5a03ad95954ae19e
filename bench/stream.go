package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
)

// delivery is what reached the subscribers of one round.
type delivery struct {
	delivered  int64 // events of the measured time, over all subscribers
	lost       int64 // events that never came
	disordered int64 // events that came again, or after a later one
	cut        int64 // subscribers that the server cut off
}

// pacedCallers submit together at a given rate. They are many, so that a slow
// answer holds up few of the others.
const pacedCallers = 200

// sampled bounds how many deliveries a second have their latency taken: reading
// the time out of an event costs more than receiving it.
const sampled = 100_000

// deliveryLimit is how long after the last commit an event may still arrive.
const deliveryLimit = time.Minute

// streaming is a scenario of subscribers that follow the log over WebSocket
// while transitions are submitted at a steady rate. The latency is from the
// decision of a transition, which its event carries as its time, to the moment
// the subscriber has read the event from its socket. So the commit is in it.
func streaming(n, rate int) *scenario {
	return &scenario{name: subscribers(n), run: func(ctx context.Context, e *env) (*sample, error) {
		// The decisions take their time from the clock that the subscribers read.
		eng, address, err := e.serve(ctx, engine.Config{Now: time.Now})
		if err != nil {
			return nil, err
		}
		head, err := eng.Read().Head(ctx, tenant)
		if err != nil {
			return nil, err
		}
		a := &audience{every: max(int64(n*rate/sampled), 1)}
		e.later(func() error { a.leave(); return nil })
		if err := a.enter(ctx, address, head, n); err != nil {
			return nil, err
		}
		runtime.GC()
		callers := submitters(e, eng, pacedCallers, flips)
		warm, err := phase(ctx, callers, float64(rate), e.Duration/5)
		if err != nil {
			return nil, err
		}
		a.measured.Store(head + warm.all)
		m, err := phase(ctx, callers, float64(rate), e.Duration)
		if err != nil {
			return nil, err
		}
		m.all += warm.all
		m.stream, m.latency = a.until(ctx, head+m.all)
		return m, ctx.Err()
	}}
}

// subscribers names the scenario of so many.
func subscribers(n int) string { return fmt.Sprintf("WebSocket: %d subscribers", n) }

// audience is all the subscribers of a round.
type audience struct {
	members  []*subscriber
	every    int64        // one in so many deliveries has its latency taken
	measured atomic.Int64 // the position that was the last when the measured time began
}

// enter lets so many subscribe to what comes after head.
func (a *audience) enter(ctx context.Context, address string, head int64, n int) error {
	for range n {
		s, err := subscribe(ctx, address, head)
		if err != nil {
			return err
		}
		s.every, s.measured = a.every, &a.measured
		s.reading.Go(s.read)
		a.members = append(a.members, s)
	}
	return nil
}

// leave ends all subscriptions. It may be called twice.
func (a *audience) leave() {
	for _, s := range a.members {
		s.leave()
	}
}

// until waits until all subscribers have received everything up to a position, and returns the deliveries and their delays.
func (a *audience) until(ctx context.Context, last int64) (*delivery, latency) {
	for _, s := range a.members { // what is lost then is counted
		_ = poll(ctx, 10*time.Millisecond, deliveryLimit, "lost", func() (bool, error) { return s.last.Load() >= last || s.cut.Load(), nil })
	}
	a.leave()
	var latencies []time.Duration
	d := &delivery{}
	for _, s := range a.members {
		latencies = append(latencies, s.latencies...)
		d.add(s, last)
	}
	return d, latencyOf(latencies)
}

// add adds what a subscriber got of everything up to a position.
func (d *delivery) add(s *subscriber, position int64) {
	d.delivered += s.delivered
	d.disordered += s.disordered
	d.lost += s.lost + max(position-s.last.Load(), 0)
	if s.cut.Load() {
		d.cut++
	}
}

// subscriber follows the log on one WebSocket connection. A thousand of them
// share the processor with the server that they measure, so they read no more of
// a message than they must.
type subscriber struct {
	ws       *websocket.Conn
	every    int64         // see audience
	measured *atomic.Int64 // see audience

	last       atomic.Int64 // the newest position that has come
	cut        atomic.Bool  // the server has ended it
	leaving    atomic.Bool
	reading    sync.WaitGroup
	delivered  int64
	lost       int64
	disordered int64
	latencies  []time.Duration
}

// subscribe connects and subscribes to everything that comes after head.
func subscribe(ctx context.Context, address string, head int64) (*subscriber, error) {
	dialer := websocket.Dialer{Subprotocols: []string{api.Subprotocol}, ReadBufferSize: 32 << 10}
	ws, _, err := dialer.DialContext(ctx, "ws://"+address+"/v1/stream", nil)
	if err != nil {
		return nil, err
	}
	s := &subscriber{ws: ws}
	s.last.Store(head)
	message := `{"op":"subscribe","id":"a","after":` + strconv.FormatInt(head, 10) + `}`
	if err := ws.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		return nil, errors.Join(err, ws.Close())
	}
	return s, nil
}

// read takes messages until the socket ends.
func (s *subscriber) read() {
	var message bytes.Buffer
	for {
		_, r, err := s.ws.NextReader()
		if err == nil {
			message.Reset()
			_, err = io.Copy(&message, r)
		}
		if err != nil {
			s.cut.Store(!s.leaving.Load())
			return
		}
		s.take(message.Bytes(), time.Now())
	}
}

// leave ends the subscription and waits for its reader. It may be called twice.
func (s *subscriber) leave() {
	s.leaving.Store(true)
	_ = s.ws.NetConn().Close() // nobody waits for more
	s.reading.Wait()
}

// take notes an event. Every transition of the measured workflow has one.
func (s *subscriber) take(message []byte, now time.Time) {
	if !bytes.HasPrefix(message, []byte(`{"op":"event",`)) {
		return // "subscribed" or "caught_up"
	}
	_, text, _ := bytes.Cut(message, []byte(`"position":`))
	end := bytes.IndexAny(text, ",}")
	position, _ := strconv.ParseInt(string(text[:max(end, 0)]), 10, 64) // 0, and so out of order, where there is none
	last := s.last.Load()
	if position <= last {
		s.disordered++
		return
	}
	s.lost += position - last - 1
	s.last.Store(position)
	from := s.measured.Load()
	if from == 0 || position <= from {
		return
	}
	s.delivered++
	if position%s.every == 0 {
		_, text, _ := bytes.Cut(message, []byte(`"time":"`))
		text, _, _ = bytes.Cut(text, []byte(`"`))
		if at, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
			s.latencies = append(s.latencies, now.Sub(at))
		}
	}
}
