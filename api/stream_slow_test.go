package api_test

import (
	"context"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/internal/streamtest"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// smallWindow is a dialer whose sockets take little that is not read.
func smallWindow() *websocket.Dialer { return &websocket.Dialer{NetDialContext: streamtest.Dial} }

// Events of this size fill the sockets soon.
const bigEvent = streamtest.SocketsHold / 5

// readOn reads the events that follow, up to a position or until the connection
// ends. It returns the position of the last, and why it ended.
func (c *wsClient) readOn(after, upTo int64) (int64, error) {
	c.t.Helper()
	for after < upTo {
		m, err := c.read()
		if err != nil {
			return after, err
		}
		assert.Falsef(c.t, m.Op == "event" && m.Position != after+1, "after position %d came %d", after, m.Position)
		after = max(after, m.Position)
	}
	return after, nil
}

// resume reads the events between two positions. It reconnects if it is disconnected as a slow reader on a busy machine.
func (s *server) resume(after, upTo int64) {
	s.t.Helper()
	for after < upTo {
		c := s.dial()
		c.subscribe("a", strconv.FormatInt(after, 10), `{}`)
		after, _ = c.readOn(after, upTo)
		_ = c.ws.Close()
	}
}

func TestSlowReaderGetsResumePosition(t *testing.T) {
	pgtest.Long(t)
	s := newServer(t, func(c *api.Config) { // and for nothing else, however long all this takes
		c.Stream.MaxLag, c.Stream.WriteTimeout, c.Stream.PingEvery = 20, 5*time.Minute, time.Hour
	})
	slow := s.dialWith(smallWindow())
	slow.subscribe("a", `"start"`, `{}`)
	slow.events("caught_up")
	for range 3 {
		s.flood(10, bigEvent)
	}
	// The slow one's sockets hold five of them at most. When they were full, a
	// batch that was not yet too late was being written, and another waited behind
	// it: it cannot have more than 5 + 20 + 20, and 20 more are too many.
	fast := s.dial()
	fast.subscribe("a", `30`, `{}`)
	fast.events("caught_up")
	for end := 40; end <= 80; end += 10 { // in steps in which the fast one can keep up
		s.flood(10, 10)
		ids := fast.take(10)
		assert.Equalf(t, strconv.Itoa(end)+"-0", ids[9], "the fast reader got %q", ids)
	}
	last, err := slow.readOn(0, math.MaxInt64)
	require.Truef(t, websocket.IsCloseError(err, 4408), "the slow reader got everything up to %d and then %v", last, err)
	_, reason, _ := strings.Cut(err.Error(), "resume after ")
	resume, err := strconv.ParseInt(reason, 10, 64)
	assert.Truef(t, err == nil && resume == last && last <= 45, "it read up to %d and is to resume after %q", last, reason)
	again := s.dial()
	again.subscribe("a", reason, `{}`)
	ids := again.take(int(80 - resume))
	assert.Equalf(t, "80-0", ids[len(ids)-1], "resumed with %q", ids)
}

func TestStuckReadersSlowNoOther(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newServer(t, func(c *api.Config) { c.Stream.WriteTimeout = 2 * time.Second })
	var stuck []*wsClient
	for range 3 {
		c := s.dialWith(smallWindow())
		c.subscribe("a", `"start"`, `{}`)
		stuck = append(stuck, c)
	}
	fast := s.dial()
	fast.subscribe("a", `"start"`, `{}`)
	fast.events("caught_up")
	read := later(func() bool {
		last, _ := fast.readOn(0, 30)
		s.resume(last, 30)
		_ = fast.ws.Close()
		return true
	})
	s.flood(30, bigEvent)
	assert.True(t, <-read, "the fast reader did not get everything")
	s.waitForStreams(0) // the stuck ones are gone
	for _, c := range stuck {
		last, err := c.readOn(0, math.MaxInt64)
		assert.Truef(t, last < 30 && err != nil, "a reader that did not read got everything up to %d: %v", last, err)
		s.resume(last, 30)
	}
}

func TestStopCutsWhoDoesNotLetGo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.flood(30, bigEvent)
	c := s.dialWith(smallWindow())
	c.subscribe("a", `"start"`, `{}`)
	c.take(1) // of a batch that the sockets do not hold: the writer is stuck, or will be
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, s.api.Stop(ctx), context.DeadlineExceeded, "stop")
	assert.Equal(t, 0, s.api.OpenStreams(), "streams are left")
	assert.NoError(t, s.api.Stop(t.Context()), "stop again")
}

func TestSubscription_DatabaseOutage(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newServer(t, func(c *api.Config) { c.Stream.WriteTimeout = time.Minute }) // it is not read meanwhile
	// Many reads of the log, and much more than the sockets hold.
	s.flood(600, 12_000)
	s.flood(500, 12_000)
	c := s.dialWith(smallWindow())
	c.subscribe("a", `"start"`, `{}`)
	ids := c.take(1)
	restore := s.outage()
	refused := s.dial()
	refused.send(`{"op":"subscribe","id":"b","after":"now"}`)
	m := refused.next()
	assert.Truef(t, m.Op == "error" && m.Code == "database_unavailable", "during the outage subscribing was answered with %+v", m)
	restored, waiting := make(chan bool, 1), s.log.says("waits for the database")
	go func() {
		waits := false
		select {
		case <-waiting:
			waits = true
		case <-time.After(await.Patience):
		}
		restore()
		restored <- waits
	}()
	ids = append(ids, c.take(1099)...) // what was read before the outage, so that more is asked for, and then the rest
	assert.True(t, <-restored, "the reader did not wait for the database")
	for i, id := range ids {
		require.Equalf(t, strconv.Itoa(i+1)+"-0", id, "event %d", i+1)
	}
	_, m = c.events("caught_up")
	assert.Equalf(t, int64(1100), m.Position, "%+v", m)
}

// outage closes the database to all clients until the returned function is called.
func (s *server) outage() (restore func()) {
	s.t.Helper()
	config := s.pool.Config().ConnConfig.Copy()
	name := config.Database
	config.Database = "postgres" // from within, a database cannot be closed
	admin, err := pgx.ConnectConfig(s.t.Context(), config)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = admin.Close(context.Background()) })
	run := func(sql string, args ...any) {
		s.t.Helper()
		if _, err := admin.Exec(s.t.Context(), sql, args...); err != nil {
			s.t.Fatal(err)
		}
	}
	alter := "ALTER DATABASE " + pgx.Identifier{name}.Sanitize() + " ALLOW_CONNECTIONS "
	run(alter + "false")
	// A connection that is being established locks the database until it is visible.
	await.Eventually(s.t, "nobody is connecting", func() bool {
		var coming bool
		if err := admin.QueryRow(s.t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'object'
			AND classid = 'pg_database'::regclass
			AND objid = (SELECT oid FROM pg_database WHERE datname = $1))`, name).Scan(&coming); err != nil {
			s.t.Fatal(err)
		}
		return !coming
	})
	run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, name)
	return func() { run(alter + "true") }
}
