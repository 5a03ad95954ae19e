package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/internal/streamtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// socketPair returns a server's raw socket after the handshake, and gorilla's
// client at its other end.
func socketPair(t testing.TB) (net.Conn, *websocket.Conn) {
	t.Helper()
	sockets := make(chan net.Conn, 1)
	release := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			close(sockets)
			return
		}
		sockets <- ws.NetConn()
		<-release
		_ = ws.Close()
	}))
	server.Listener = streamtest.Listener{Listener: server.Listener}
	server.Start()
	t.Cleanup(func() {
		close(release)
		server.Close()
	})
	client, _, err := (&websocket.Dialer{NetDialContext: streamtest.Dial}).Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return <-sockets, client
}

func write(t testing.TB, to net.Conn, b []byte) {
	t.Helper()
	_, err := to.Write(b)
	require.NoError(t, err)
}

func TestFramesAreReadByGorillaAsTheyWereMeant(t *testing.T) {
	server, client := socketPair(t)
	for _, n := range []int{0, 1, 125, 126, 127, 65535, 65536, 1 << 20} {
		payload := bytes.Repeat([]byte("x"), n)
		written := make(chan error, 1)
		go func() {
			_, err := server.Write(appendFrame(nil, frameText, payload))
			written <- err
		}()
		kind, got, err := client.ReadMessage()
		if err = errors.Join(err, <-written); err != nil || kind != websocket.TextMessage || !bytes.Equal(got, payload) {
			t.Fatalf("%d bytes: kind %d, %d bytes, %v", n, kind, len(got), err)
		}
	}
	pings, pongs := "", ""
	client.SetPingHandler(func(data string) error { pings += data + ";"; return nil })
	client.SetPongHandler(func(data string) error { pongs += data + ";"; return nil })
	b := appendFrame(nil, framePing, nil)
	b = appendFrame(b, framePong, []byte("pong"))
	write(t, server, appendClose(b, closeSlow, "resume after 17"))
	_, _, err := client.ReadMessage()
	assert.Truef(t, websocket.IsCloseError(err, closeSlow) && strings.HasSuffix(err.Error(), "resume after 17"),
		"the close frame was read as %v", err)
	assert.Truef(t, pings == ";" && pongs == "pong;", "pings %q, pongs %q", pings, pongs)
}

func TestCloseFramesAreShortEnough(t *testing.T) {
	for _, c := range []struct {
		code   int
		reason string
		want   string
	}{
		{closeNoStatus, "dropped", "websocket: close 1005 (no status)"},
		{closeBadMessage, strings.Repeat("x", 500), "websocket: close 4400: " + strings.Repeat("x", maxControl-2)},
	} {
		server, client := socketPair(t)
		write(t, server, appendClose(nil, c.code, c.reason))
		_, _, err := client.ReadMessage()
		assert.EqualErrorf(t, err, c.want, "%d", c.code)
	}
}

type eventMessage struct {
	Op       string         `json:"op"`
	ID       string         `json:"id"`
	Position int64          `json:"position"`
	More     bool           `json:"more"`
	Event    jsontext.Value `json:"event"`
}

func TestEventFramesAreJSONMessages(t *testing.T) {
	for _, id := range []string{"a", `quote " \ and ä`, "\u2028"} {
		for _, size := range []int{2, 40, 60, 200, 70_000} {
			for i, more := range []bool{false, true} {
				cloudEvent := []byte(`"` + strings.Repeat("c", size) + `"`)
				e := transitions.Logged{Event: transitions.Event{Position: 1<<62 + int64(i)}, CloudEvent: cloudEvent}
				frame := appendEvent(nil, eventHead(id), &e, more)
				require.Equal(t, len(frame), frameEnd(frame, 1), "the frame says that it has bytes, and has")
				var got eventMessage
				require.NoError(t, json.Unmarshal(frame[len(frame)-payloadLength(frame):], &got))
				if got.Op != "event" || got.ID != id || got.Position != e.Position || got.More != more || !bytes.Equal(got.Event, cloudEvent) {
					t.Errorf("id %q, %d bytes: read as %.200v", id, size, got)
				}
			}
		}
	}
}

// payloadLength is the length of the one frame that b is.
func payloadLength(b []byte) int {
	switch b[1] {
	case 126:
		return len(b) - 4
	case 127:
		return len(b) - 10
	default:
		return len(b) - 2
	}
}

func TestAnswersAreJSONMessages(t *testing.T) {
	for want, frame := range map[string][]byte{
		`{"op":"subscribed","id":"a\"","after":7}`: answerFrame("subscribed", `a"`, "after", 7),
		`{"op":"caught_up","id":"a","position":0}`: answerFrame("caught_up", "a", "position", 0),
		`{"op":"unsubscribed","id":"a"}`:           endFrame("a"),
		`{"op":"error","id":"a","code":"invalid_request","detail":"no \"b\""}`: errorFrame("a",
			transitions.Problem{Code: workflow.InvalidRequest, Detail: `no "b"`}),
		`{"op":"error","id":"b","code":"database_unavailable","detail":"later"}`: errorFrame("b",
			transitions.Problem{Code: workflow.Unavailable, Detail: `later`}),
	} {
		assert.Equal(t, want, string(frame[len(frame)-payloadLength(frame):]))
	}
}

func FuzzFrameEndFindsTheFrame(f *testing.F) {
	f.Add(uint32(5), uint32(130), uint32(70_000), uint32(40))
	f.Fuzz(func(t *testing.T, first, second, third, at uint32) {
		var b []byte
		var ends []int
		for _, n := range []uint32{first, second, third} {
			b = appendFrame(b, frameText, make([]byte, n%100_000))
			ends = append(ends, len(b))
		}
		n := int(at) % (len(b) + 1)
		want := 0
		for i := 0; want < n; i++ {
			want = ends[i]
		}
		assert.Equalf(t, want, frameEnd(b, n), "byte %d is in the frame that ends at", n)
	})
}

// newTestWriter is a writer of its own, which nothing reads for.
func newTestWriter(socket net.Conn, timeout time.Duration) (*writer, context.Context) {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &writer{socket: socket, cancel: cancel, timeout: timeout, ping: time.Hour, written: map[*pump]int64{}}, ctx
}

func TestWriter_Chunks(t *testing.T) {
	server, client := socketPair(t)
	w, _ := newTestWriter(server, time.Minute)
	const events = 500
	b := transitions.Batch{Last: events, Head: events}
	for i := range events {
		b.Events = append(b.Events, transitions.Logged{
			Event:      transitions.Event{Position: int64(i) + 1},
			CloudEvent: []byte(`"` + strings.Repeat("x", i*3) + `"`),
		})
	}
	b.Events[250].CloudEvent = []byte(`"` + strings.Repeat("x", 3*chunk) + `"`)
	p := newPump(message{id: "a"})
	failed := make(chan error, 1)
	go func() {
		failed <- w.put(outgoing{pump: p, batch: b, caughtUp: true, frame: answerFrame("subscribed", "a", "after", 0)})
	}()
	var ops []string
	for position := int64(1); len(ops) < 2; {
		_, text, err := client.ReadMessage()
		require.NoError(t, err)
		var got eventMessage
		require.NoError(t, json.Unmarshal(text, &got))
		if got.Op != "event" {
			ops = append(ops, got.Op+strconv.FormatInt(position, 10))
			continue
		}
		if want := b.Events[position-1].CloudEvent; got.Position != position || !bytes.Equal(got.Event, want) {
			t.Fatalf("position %d has %d bytes; want %d with %d", got.Position, len(got.Event), position, len(want))
		}
		position++
	}
	assert.Equalf(t, "subscribed1,caught_up501", strings.Join(ops, ","), "the other messages came as %q", ops)
	err := <-failed
	assert.Truef(t, err == nil && w.written[p] == events, "put: %v, written up to %d", err, w.written[p])
}

func TestWriterMendsABrokenFrameBeforeItCloses(t *testing.T) {
	server, client := socketPair(t)
	w, ctx := newTestWriter(server, 100*time.Millisecond)
	p := newPump(message{id: "a"})
	b := transitions.Batch{}
	const events = 4 * streamtest.SocketsHold / 1000
	for i := range events {
		b.Events = append(b.Events, transitions.Logged{
			Event: transitions.Event{Position: int64(i) + 1}, CloudEvent: []byte(`"` + strings.Repeat("x", 1000) + `"`),
		})
	}
	b.Last = events
	err := w.put(outgoing{pump: p, batch: b})
	require.Truef(t, closingAfter(err) == tooSlow, "put to a reader that does not read: %v", err)
	// The reader wakes up in time for the goodbye.
	lastRead := make(chan int64, 1)
	closed := make(chan error, 1)
	go func() {
		last := int64(0)
		for {
			_, text, err := client.ReadMessage()
			if err != nil {
				lastRead <- last
				closed <- err
				return
			}
			var got eventMessage
			err = json.Unmarshal(text, &got)
			assert.Truef(t, err == nil && got.Position == last+1, "after position %d came %d, %v", last, got.Position, err)
			last = got.Position
		}
	}()
	w.cancel(tooSlow)
	w.timeout = closeWait
	w.close(context.Cause(ctx))
	last, reason := <-lastRead, <-closed
	want := "websocket: close 4408: resume after " + strconv.FormatInt(w.written[p], 10)
	assert.Truef(t, reason.Error() == want && w.written[p] <= last,
		"the reader got events up to %d and %v, want %s", last, reason, want)
	w.hangUp()
}

func TestWriterSaysNothingToAPeerThatIsGone(t *testing.T) {
	server, client := socketPair(t)
	w, ctx := newTestWriter(server, time.Minute)
	w.cancel(gone)
	w.run(ctx)
	_, _, err := client.ReadMessage()
	assert.Truef(t, err != nil && !websocket.IsCloseError(err, websocket.CloseNormalClosure), "the peer was told %v", err)
	_, err = server.Write([]byte("x"))
	assert.True(t, err != nil && err != io.EOF, "the socket is still open")
}

func BenchmarkEventFrames(b *testing.B) {
	head := eventHead("a")
	log := make([]transitions.Logged, 100)
	for i := range log {
		log[i] = transitions.Logged{Event: transitions.Event{Position: int64(i)}, CloudEvent: bytes.Repeat([]byte("x"), 500)}
	}
	buf := make([]byte, 0, 1<<20)
	s := selection{}
	b.ReportAllocs()
	for b.Loop() {
		buf = buf[:0]
		for e, more := range s.from(log) {
			buf = appendEvent(buf, head, e, more)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(log)), "ns/event")
}
