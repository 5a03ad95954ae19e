package cli

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// serving is a service on a database of its own, in which orders can be placed.
func serving(t *testing.T, change ...func(*service.Config)) *service.Service {
	t.Helper()
	config := service.Config{Workflows: []workflow.Source{order.Workflow(provider.New())},
		Database: pgtest.URL(t), Address: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&config)
	}
	s, err := service.Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Stop(context.Background()))
	})
	return s
}

// place places an order, each time with the same key.
func place(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/workflows/order/place",
		strings.NewReader(`{"customer":"c-1","cart":"k-9","total":129900,"currency":"EUR"}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestServeStopsInOrderOnSIGTERM(t *testing.T) {
	version := func(n int) workflow.Source {
		return workflow.Define("note", n, workflow.Start("write", "written",
			func(*workflow.Call, *struct{}, workflow.None) error { return nil })).
			Final("written")
	}
	root := CommandLine(version(1), order.Workflow(provider.New()), version(20_000_000))
	root.SetArgs([]string{"serve", "--address", "127.0.0.1:0", "--database", pgtest.URL(t)})
	r, w := io.Pipe()
	root.SetErr(w)
	code := make(chan int, 1)
	go func() {
		code <- Execute(root)
		_ = w.Close()
	}()
	var log strings.Builder
	for lines := bufio.NewScanner(r); lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "msg=serving") {
			require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
		}
	}
	select {
	case c := <-code:
		assert.Truef(t, c == 0 && strings.Contains(log.String(), "msg=stopping") &&
			strings.Contains(log.String(), `workflows="note v20000000 v1, order v1"`),
			"exit %d\n%s", c, log.String())
	case <-time.After(service.StopTimeout):
		t.Fatal("still running")
	}
}

// Without workers it leaves what it accepts to other nodes.
func TestServeWithoutWorkersWorksOnNothing(t *testing.T) {
	c, err := inFlight(engine.InFlightConfig{Lease: time.Minute})
	assert.Truef(t, err == nil && c.Workers == -1 && c.Lease == time.Minute, "%+v, %v", c, err)
}
