package server

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

func TestAnAddressHasItsShareOfTheConnections(t *testing.T) {
	s := serving(t, Config{Limits: Limits{PerAddress: 2}}, answering)
	first, second := dial(t, s, whole), dial(t, s, whole)
	answered(t, first)
	answered(t, second)
	ended(t, dial(t, s, ""))
	got := s.Stats()
	assert.Truef(t, got.Refused == 1 && got.Open == 2, "%+v", got)
	elsewhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}
	if l, err := net.ListenTCP("tcp", elsewhere); err == nil { // not everywhere is there a second address
		_ = l.Close()
		answered(t, dialFrom(t, s, elsewhere, whole))
	}
	_ = first.Close()
	await.Eventually(t, "there is room again", func() bool { return s.Stats().Open < 3 && get(t.Context(), s) == nil })
}

func TestIdleConnectionsMakePlace(t *testing.T) {
	s := serving(t, Config{Limits: Limits{Connections: 2, PerAddress: 10}}, answering)
	first, second := dial(t, s, whole), dial(t, s, "")
	answered(t, first)
	await.Eventually(t, "the first is idle", func() bool {
		s.listener.mu.Lock()
		defer s.listener.mu.Unlock()
		return s.listener.idle.Len() == 1
	})
	_, err := io.WriteString(second, whole)
	require.NoError(t, err)
	answered(t, second)
	answered(t, dial(t, s, whole))
	ended(t, first)
	got := s.Stats()
	assert.Truef(t, got.Evicted == 1 && got.Open == 2, "%+v", got)
}

func TestMoreConnectionsThanThereMayBeWait(t *testing.T) {
	began, end := make(chan struct{}, 3), make(chan struct{})
	s := serving(t, Config{Limits: Limits{Connections: 2, PerAddress: 10}}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		began <- struct{}{}
		<-end
		_, _ = io.WriteString(w, "well")
	}))
	var all []net.Conn
	for range 3 {
		all = append(all, dial(t, s, whole))
	}
	<-began
	<-began
	await.Eventually(t, "the third waits", func() bool { return s.Stats().Open == 3 })
	select {
	case <-began:
		t.Error("a third request began")
	default:
	}
	close(end) // which makes the first two idle, so one of them makes place
	await.Receive(t, "the third request", began)
	answered(t, all[2])
}

func TestCloseEndsTheWaitForRoom(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	s := serving(t, Config{Limits: Limits{Connections: 1, PerAddress: 10}},
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	dial(t, s, whole)
	await.Eventually(t, "the first is there", func() bool { return s.Stats().Open == 1 })
	dial(t, s, whole)
	await.Eventually(t, "the second waits", func() bool { return s.Stats().Open == 2 })
}
