package client

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type problem = transitions.Problem

const (
	// silence is the maximum time without a message. Nodes ping every 20 seconds.
	silence = time.Minute
	// writeTime bounds a write of a small message.
	writeTime = 10 * time.Second
)

// link is a WebSocket connection. One goroutine reads it; another one refreshes its credential.
type link struct {
	client *Client
	conn   *websocket.Conn
	unhook func() bool
	users  sync.WaitGroup
	said   chan *wire.ServerMessage // replies about the credential
}

// dial opens a connection.
func (c *Client) dial(ctx context.Context, at int64) (*link, *failed) {
	header, f := c.identity(ctx)
	if f != nil {
		return nil, f
	}
	limited, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	address := "ws" + strings.TrimPrefix(c.urls[at], "http") + "/v1/stream"
	conn, response, err := c.dialer.DialContext(limited, address, header)
	switch {
	case err != nil && response != nil && response.StatusCode != http.StatusSwitchingProtocols:
		body, _ := io.ReadAll(response.Body) // in memory, possibly truncated
		return nil, refused(&answer{response.StatusCode, response.Header, body})
	case err != nil:
		return nil, noResponse(err)
	}
	l := &link{client: c, conn: conn, said: make(chan *wire.ServerMessage, 1)}
	l.unhook = context.AfterFunc(ctx, func() { _ = conn.Close() })
	conn.SetPingHandler(func(data string) error {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		_ = conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTime)) // the reader detects a broken connection
		return nil
	})
	return l, nil
}

// close closes the connection and waits for its goroutines. The context of keepCredential must have ended.
func (l *link) close() {
	l.unhook()
	_ = l.conn.Close()
	l.users.Wait()
}

// leave sends a close message.
func (l *link) leave() {
	_ = l.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(writeTime))
}

// write sends a message. If it fails, the reader sees the end of the connection.
func (l *link) write(m *wire.Message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(writeTime))
	if err := l.conn.WriteMessage(websocket.TextMessage, text); err != nil {
		_ = l.conn.Close()
		return err
	}
	return nil
}

// read returns the next message.
func (l *link) read() (*wire.ServerMessage, error) {
	_ = l.conn.SetReadDeadline(time.Now().Add(silence))
	_, text, err := l.conn.ReadMessage()
	if err != nil {
		return nil, err
	}
	m := &wire.ServerMessage{}
	return m, json.Unmarshal(text, m, reading)
}

// keepCredential presents a new credential before the current one expires. If it cannot, the connection ends with the credential.
func (l *link) keepCredential(ctx context.Context) {
	if l.client.cfg.TokenSource == nil {
		return
	}
	l.users.Go(func() {
		for failures := 0; ; {
			until, f := l.authenticate(ctx)
			early := time.Until(until) * 4 / 5
			switch {
			case f == nil && until.IsZero() || f != nil && !f.again:
				return
			case f == nil:
				failures = 0
			default:
				failures++
				early = l.client.backoff(failures)
			}
			if !backoff.Sleep(ctx, max(early, time.Second)) {
				return
			}
		}
	})
}

// authenticate presents the current credential of the source and returns its expiry, or zero.
func (l *link) authenticate(ctx context.Context) (until time.Time, f *failed) {
	token, err := l.client.token(ctx)
	if err != nil {
		return until, noResponse(err)
	}
	if err := l.write(&wire.Message{Op: wire.Authenticate, ID: credentialID, Credential: &token}); err != nil {
		return until, &failed{err: workflow.AsError(err)} // the reader sees it too
	}
	select {
	case m := <-l.said:
		if m.Op == wire.OpError {
			return until, failedWith(&problem{Code: m.Code, Detail: m.Detail})
		}
		return m.Until, nil
	case <-ctx.Done():
		return until, &failed{err: workflow.AsError(ctx.Err())}
	}
}
