package jetstream_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	upstream "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
)

// oldServer starts the system's nats-server, version 2.9 in Debian 12, and returns its address.
func oldServer(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("nats-server")
	if err != nil {
		program = "/usr/sbin/nats-server"
		if _, err := os.Stat(program); err != nil {
			t.Skip("there is no nats-server (Debian's package of that name): an older server is not tested")
		}
	}
	dir := t.TempDir()
	c := exec.Command(program, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", dir, "--ports_file_dir", dir)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // killed
	})
	var ports struct{ Nats []string }
	await.Eventually(t, "the server says where it is", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*.ports"))
		if len(files) != 1 {
			return false
		}
		text, err := os.ReadFile(files[0])
		return err == nil && json.Unmarshal(text, &ports) == nil && len(ports.Nats) > 0
	})
	return ports.Nats[0]
}

func TestServerBefore210(t *testing.T) {
	t.Parallel()
	url := oldServer(t)
	s := newStreamAt(t, url)
	s.publish(t, nats.Msg{Subject: "payments.refused", Header: nats.Header{"Nats-Msg-Id": {"no"}}})
	s.publish(t, nats.Msg{Subject: "payments.captured", Header: nats.Header{"Nats-Msg-Id": {"yes"}}})
	c := quick(url)
	c.Subjects = []string{"payments.captured", "payments.late"}
	if strings.HasPrefix(s.conn.ConnectedServerVersion(), "2.9.") {
		err := newSource(t, c).Run(bounded(t), done)
		assert.ErrorContains(t, err, "several subjects require NATS 2.10", "several subjects")
		_, err = s.stream.Consumer(bounded(t), "pawl-payments")
		assert.Error(t, err, "a durable consumer was left behind")
	}
	c.Subjects = []string{"payments.captured"}
	got := run(t, c, done).messages(t, 1)[0]
	assert.Equal(t, "yes", got.ID)
}

// An older build created a consumer without subjects on a server that ignores lists of them.
func TestLeftoverConsumerIsReplaced(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := newStream(t, server)
	leave := func(description string) {
		_, err := s.stream.CreateOrUpdateConsumer(bounded(t), upstream.ConsumerConfig{Durable: "pawl-payments", Description: description,
			AckPolicy: upstream.AckExplicitPolicy, MaxDeliver: -1})
		require.NoError(t, err)
	}
	c := quick(server.URL())
	c.Subjects = []string{"payments.captured"}
	leave("of somebody else")
	assert.ErrorContains(t, newSource(t, c).Run(bounded(t), done), "its subjects are []", "somebody else's consumer")
	leave("Inbox of Pawl: payments")
	s.publish(t, nats.Msg{Subject: "payments.refused", Header: nats.Header{"Nats-Msg-Id": {"no"}}})
	s.publish(t, nats.Msg{Subject: "payments.captured", Header: nats.Header{"Nats-Msg-Id": {"yes"}}})
	got := run(t, c, done).messages(t, 1)[0]
	assert.Equal(t, "yes", got.ID)
}
