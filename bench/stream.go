package bench

import (
	"bytes"
	"context"
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
func streaming(name string, subscribers, rate int) *scenario {
	return &scenario{name: name, run: func(ctx context.Context, e *env) (*sample, error) {
		// The decisions take their time from the clock that the subscribers read.
		eng, address, err := e.serve(ctx, engine.Config{Now: time.Now})
		if err != nil {
			return nil, err
		}
		head, err := eng.Head(ctx, tenant)
		if err != nil {
			return nil, err
		}
		var measured atomic.Int64
		members := make([]*subscriber, subscribers)
		leave := func() {
			for _, s := range members {
				if s != nil {
					s.leave()
				}
			}
		}
		e.later(func() error { leave(); return nil })
		for i := range members {
			if members[i], err = subscribe(ctx, address, head); err != nil {
				return nil, err
			}
			members[i].every, members[i].measured = max(int64(subscribers*rate/sampled), 1), &measured
			members[i].reading.Go(members[i].read)
		}
		runtime.GC()
		callers := submitters(e, eng, pacedCallers)
		warm, err := phase(ctx, callers, float64(rate), e.Duration/5)
		if err != nil {
			return nil, err
		}
		measured.Store(head + warm.all)
		m, err := phase(ctx, callers, float64(rate), e.Duration)
		if err != nil {
			return nil, err
		}
		m.all += warm.all
		last := head + m.all
		for _, s := range members { // what is lost then is counted
			_ = poll(ctx, 10*time.Millisecond, deliveryLimit, "lost", func() (bool, error) { return s.last.Load() >= last || s.cut.Load(), nil })
		}
		leave()
		var latencies []time.Duration
		m.stream = &delivery{}
		for _, s := range members {
			latencies = append(latencies, s.latencies...)
			m.stream.add(s, last)
		}
		m.latency = latencyOf(latencies)
		return m, ctx.Err()
	}}
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
	every    int64 // one in so many deliveries has its latency taken
	measured *atomic.Int64

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
	return s, ws.WriteMessage(websocket.TextMessage, []byte(message))
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
