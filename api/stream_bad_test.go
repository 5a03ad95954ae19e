package api_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/internal/streamtest"
)

func TestBadMessagesCloseTheirConnectionOnly(t *testing.T) {
	s := newServer(t)
	bystander := s.dial()
	bystander.subscribe("a", `"start"`, `{}`)
	bystander.events("caught_up")
	before := s.rows()
	type bad struct {
		kind int
		text string
		code int
	}
	cases := []bad{
		{websocket.BinaryMessage, `{"op":"unsubscribe","id":"a"}`, 4400},
		{websocket.TextMessage, `{"op":"subscribe","id":"` + strings.Repeat("x", 64<<10) + `"}`, websocket.CloseMessageTooBig},
		{websocket.TextMessage, strings.Repeat("x", 10_000_000), websocket.CloseMessageTooBig},
		{websocket.TextMessage, strings.Repeat("[", 60_000), 4400},
	}
	for _, text := range streamtest.BadMessages() {
		cases = append(cases, bad{websocket.TextMessage, text, 4400})
	}
	for _, b := range cases {
		c := s.dial()
		c.subscribe("a", `"start"`, `{}`)
		sent := make(chan error, 1)
		go func() { sent <- c.ws.WriteMessage(b.kind, []byte(b.text)) }()
		err := c.closed()
		assert.Truef(t, websocket.IsCloseError(err, b.code), "%.100q: %v, want %d", b.text, err, b.code)
		<-sent // an error is the server's right
	}
	s.packed("1")
	ids := bystander.take(1)
	assert.Equalf(t, "1-0", ids[0], "the bystander got %q", ids)
	after := s.rows()
	for _, table := range []string{"instance", "command", "audit", "outbox"} {
		before[table]++
	}
	before["log"] = after["log"]
	assert.Truef(t, maps.Equal(before, after), "rows before and one command: %v, after: %v", before, after)
}

// TestBrokenFramesCloseTheirConnectionOnly sends what is not WebSocket.
func TestBrokenFramesCloseTheirConnectionOnly(t *testing.T) {
	s := newServer(t)
	for name, b := range map[string]string{
		"no mask":                 "\x81\x02{}",
		"a reserved bit":          "\xc1\x82\x00\x00\x00\x00{}",
		"an unknown opcode":       "\x83\x80\x00\x00\x00\x00",
		"a continuation of none":  "\x80\x80\x00\x00\x00\x00",
		"a long ping":             "\x89\xfe\x01\x00\x00\x00\x00\x00",
		"a ping in pieces":        "\x09\x80\x00\x00\x00\x00",
		"a length past all":       "\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"a close code of one":     "\x88\x81\x00\x00\x00\x00\x03",
		"a reserved close code":   "\x88\x82\x00\x00\x00\x00\x03\xed",
		"a reason that is no UTF": "\x88\x83\x00\x00\x00\x00\x03\xe8\xff",
		"half a frame":            "\x81\x85\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial()
			c.subscribe("a", `"start"`, `{}`)
			_, err := c.ws.NetConn().Write([]byte(b))
			require.NoError(t, err)
			if name == "half a frame" {
				_ = c.ws.NetConn().Close()
			} else if err := c.closed(); err == nil {
				t.Error("the connection goes on")
			}
			s.waitForStreams(0)
		})
	}
	s.packed("1")
}
