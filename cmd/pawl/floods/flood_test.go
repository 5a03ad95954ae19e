package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// longest is how long the good client may wait. Other tests run at the same time, so the default is far above the measured
// figures; on an idle machine 500ms holds.
var longest = flag.Duration("p99", 5*time.Second, "how long a client may wait in 99 of 100 cases while a node is flooded")

const (
	calm  = 3 * time.Second // of the good client alone
	lasts = 6 * time.Second // a flood
	large = 1_000_000       // bytes of the text of a large instance

	// rate is how many requests a second a flood has, at most: the memory of the node is to be flooded, and not the processor, which it
	// shares with those who send the flood.
	rate = 1000
)

// A flood is sent by clients that do not behave, over several connections.
type flood struct {
	name        string
	credential  string
	connections int
	streams     int // of each connection, at once
	send        func(ctx context.Context, c *client) (status int, err error)
}

// text makes a text that does not compress.
func text(size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = 'a' + byte(rand.N(26))
	}
	return string(b)
}

// Whatever clients with few rights or none send, a node with the limits of the shipped manifest stays below its memory, and serves another
// tenant as before.
func TestFloods(t *testing.T) {
	pgtest.Long(t)
	n := start(t)
	const tenant = "flooding"
	owner := n.client(n.keys(tenant, "owner", "read stream submit"))
	good := n.client(n.keys("good", "good", "read submit"))
	prepare(t, owner)
	ticket := ticketOf(t, owner, "read:note#n-0", "stream:note#n-0", "submit:note#n-0/rewrite")
	quiet := good.serve(t, calm)
	t.Logf("the good client alone: p99 %s of %d", quiet.p99, quiet.count)
	item := `{"workflow":"note","transition":"write","key":"%s","payload":{"text":"%s"}}`
	long := text(large)
	bulk := []byte("[" + strings.Repeat(fmt.Sprintf(item, "k", long)+",", 6) + fmt.Sprintf(item, "k", "") + "]")
	huge := []byte("[" + fmt.Sprintf(item, "k", text(7*large)) + "]")
	note := []byte(`{"text":"` + long + `"}`)
	forged := []string{"Webhook-Id", "m", "Webhook-Timestamp", "", "Webhook-Signature", "v1," + base64.StdEncoding.EncodeToString(make([]byte, 32))}
	var replays bytes.Buffer // of the creations of large instances, whose answers are large
	for i := range 200 {
		fmt.Fprintf(&replays, `{"workflow":"note","transition":"write","key":"w-%d","payload":{"name":"n-%d","text":"x"}}`+"\n", i%60, i%60)
	}
	post := func(path string, body []byte, headers ...string) func(context.Context, *client) (int, error) {
		return func(ctx context.Context, c *client) (int, error) {
			status, _, err := c.ask(ctx, "POST", path, body, headers...)
			return status, err
		}
	}
	get := func(path string, headers ...string) func(context.Context, *client) (int, error) {
		return func(ctx context.Context, c *client) (int, error) {
			status, _, err := c.ask(ctx, "GET", path, nil, headers...)
			return status, err
		}
	}
	keyed := func(send func(context.Context, *client, string) (int, error)) func(context.Context, *client) (int, error) {
		var count atomic.Int64
		return func(ctx context.Context, c *client) (int, error) {
			return send(ctx, c, strconv.FormatInt(count.Add(1), 10))
		}
	}
	for _, f := range []flood{
		{"messages without a signature", "", 6, 100, post("/v1/inbox/hooks", note)},
		{"messages with a forged signature", "", 6, 100, func(ctx context.Context, c *client) (int, error) {
			headers := slices.Clone(forged)
			headers[3] = strconv.FormatInt(time.Now().Unix(), 10)
			status, _, err := c.ask(ctx, "POST", "/v1/inbox/hooks", note, headers...)
			return status, err
		}},
		{"messages that arrive slowly", "", 6, 100, func(ctx context.Context, c *client) (int, error) {
			headers := slices.Clone(forged)
			headers[3] = strconv.FormatInt(time.Now().Unix(), 10)
			return dribble(ctx, c, "/v1/inbox/hooks", headers...)
		}},
		{"bulk requests with a ticket that does not cover them", ticket, 1, 60, post("/v1/commands", bulk)},
		{"bulk requests", owner.credential, 2, 60, post("/v1/commands", bulk)},
		{"bulk requests with an item that is too large", owner.credential, 1, 60, post("/v1/commands", huge)},
		{"replays of large answers", owner.credential, 2, 20, post("/v1/commands", replays.Bytes(), "Content-Type", "application/x-ndjson")},
		{"large commands", owner.credential, 2, 60, keyed(func(ctx context.Context, c *client, key string) (int, error) {
			return post("/v1/workflows/note/keys/n-1/rewrite", note, "Idempotency-Key", key)(ctx, c)
		})},
		{"lists", owner.credential, 2, 30, get("/v1/instances?limit=200")},
		{"pages of events", owner.credential, 2, 30, get("/v1/events?limit=1000&after=start")},
		{"histories", owner.credential, 2, 30, get("/v1/workflows/note/keys/n-0/history?limit=1000")},
		{"event streams", ticket, 20, 100, func(ctx context.Context, c *client) (int, error) {
			response, err := c.send(ctx, "GET", "/v1/events?workflow=note&business_key=n-0&after=start", nil, "Accept", "text/event-stream")
			if err != nil {
				return 0, err
			}
			defer response.Body.Close()
			_, err = io.CopyN(io.Discard, response.Body, 1) // and no more
			if response.StatusCode == 200 {
				<-ctx.Done()
			}
			return response.StatusCode, err
		}},
	} {
		n.endure(t, &f, good, quiet)
	}
	peak := n.peak(t)
	t.Logf("the most memory: %d MiB", peak>>20)
	assert.Truef(t, peak <= memoryLimit, "the node had %d MiB", peak>>20)
}

// dribble sends a body, of which nothing but the first byte comes.
func dribble(ctx context.Context, c *client, path string, headers ...string) (int, error) {
	body, in := io.Pipe()
	defer in.Close()
	go func() {
		_, _ = io.WriteString(in, "{")
		<-ctx.Done()
		_ = in.Close()
	}()
	response, err := c.send(ctx, "POST", path, body, append(headers, "Content-Type", "application/json")...)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

// prepare makes large instances, and one with a long history.
func prepare(t *testing.T, c *client) {
	t.Helper()
	for i := range 60 {
		c.submit(t, "/v1/workflows/note/write", fmt.Sprintf("w-%d", i), fmt.Sprintf(`{"name":"n-%d","text":"%s"}`, i, text(large-100)))
	}
	for i := range 30 {
		c.submit(t, "/v1/workflows/note/keys/n-0/rewrite", fmt.Sprintf("r-%d", i), `{"text":"`+text(large-100)+`"}`)
	}
}

func (c *client) submit(t *testing.T, path, key, body string) {
	t.Helper()
	status, answer, err := c.ask(t.Context(), "POST", path, []byte(body), "Idempotency-Key", key)
	require.Truef(t, err == nil && status < 300, "%s %s: %d %.300s %v", path, key, status, answer, err)
}

// ticketOf is a ticket with some grants of the caller's.
func ticketOf(t *testing.T, c *client, grants ...string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"grants": grants, "seconds": 3600})
	require.NoError(t, err)
	status, answer, err := c.ask(t.Context(), "POST", "/v1/tickets", body)
	var out struct {
		Ticket string `json:"ticket"`
	}
	require.Truef(t, err == nil && status < 300 && json.Unmarshal(answer, &out) == nil, "a ticket: %d %s %v", status, answer, err)
	return out.Ticket
}

// endure sends a flood while the good client goes on.
func (n *node) endure(t *testing.T, f *flood, good *client, quiet served) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var sending sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for range f.connections {
		c := n.client(f.credential)
		defer c.http.CloseIdleConnections()
		for range f.streams {
			sending.Go(func() {
				for ctx.Err() == nil {
					status, _ := f.send(ctx, c) // a connection that the node has ended is dialed again
					backoff.Sleep(ctx, time.Duration(f.connections*f.streams)*time.Second/rate)
					mu.Lock()
					answers[status]++
					mu.Unlock()
				}
			})
		}
	}
	during := good.serve(t, lasts)
	sending.Wait()
	t.Logf("%s: %v; the good client: p99 %s of %d; %d MiB at most", f.name, answers, during.p99, during.count, n.peak(t)>>20)
	select {
	case err := <-n.ended:
		n.ended <- err
		t.Fatalf("%s: the node ended: %v", f.name, err)
	default:
	}
	assert.Truef(t, during.p99 <= *longest, "%s: the good client waits %s, %s alone", f.name, during.p99, quiet.p99)
}

// served is how a client was served.
type served struct {
	p99   time.Duration
	count int
}

// serve sends commands and reads their instances for a while. What is refused because the node has too much to do it sends again.
func (c *client) serve(t *testing.T, while time.Duration) served {
	t.Helper()
	var took []time.Duration
	for begun := time.Now(); time.Since(begun) < while; {
		name := fmt.Sprintf("g-%d", rand.Int64())
		for _, r := range []struct{ method, path, body string }{
			{"POST", "/v1/workflows/note/write", `{"name":"` + name + `","text":"short"}`},
			{"GET", "/v1/workflows/note/keys/" + name, ""},
			{"GET", "/v1/instances?limit=10", ""},
		} {
			var body []byte
			headers := []string{}
			if r.body != "" {
				body, headers = []byte(r.body), []string{"Idempotency-Key", name}
			}
			sent := time.Now()
			status, answer, err := c.ask(t.Context(), r.method, r.path, body, headers...)
			for status == 503 && time.Since(sent) < while {
				backoff.Sleep(t.Context(), 20*time.Millisecond)
				status, answer, err = c.ask(t.Context(), r.method, r.path, body, headers...)
			}
			if err != nil || status >= 300 {
				t.Errorf("the good client: %s %s: %d %.200s %v", r.method, r.path, status, answer, err)
				return served{}
			}
			took = append(took, time.Since(sent))
		}
	}
	slices.Sort(took)
	return served{took[len(took)*99/100], len(took)}
}
