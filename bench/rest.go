package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/workflow"
)

// listen serves on the loopback interface until the round ends.
func (e *env) listen(handler http.Handler) (address string) {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	e.later(func() error {
		server.CloseClientConnections() // everybody has been answered
		server.Close()
		return nil
	})
	return server.Listener.Addr().String()
}

// serve starts an engine and a real server of its API.
func (e *env) serve(ctx context.Context, c engine.Config, change ...func(*api.Config)) (eng *engine.Engine, address string, err error) {
	if eng, err = e.engine(ctx, c, false); err != nil {
		return nil, "", err
	}
	config := api.Config{Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&config)
	}
	handler, err := api.New(eng, config)
	if err != nil {
		return nil, "", err
	}
	address = e.listen(handler)
	e.later(func() error { return handler.Stop(context.Background()) })
	return eng, address, nil
}

// client speaks HTTP/1.1 on one kept connection. It does little else, so that the server is measured and not the client.
type client struct {
	conn   net.Conn
	in     *bufio.Reader
	out    []byte
	caller string // the header that says who calls
	answer bytes.Buffer
}

// post sends a command and returns the body of a 200, which is valid until the
// next call.
func (c *client) post(path, key string, body []byte) ([]byte, error) {
	c.out = fmt.Appendf(c.out[:0], "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n", path, c.caller)
	if key != "" {
		c.out = fmt.Appendf(c.out, "Idempotency-Key: %s\r\n", key)
	}
	c.out = append(fmt.Appendf(c.out, "Content-Length: %d\r\n\r\n", len(body)), body...)
	if _, err := c.conn.Write(c.out); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	c.answer.Reset()
	_, err = c.answer.ReadFrom(response.Body)
	err = errors.Join(err, response.Body.Close())
	switch {
	case err != nil || response.StatusCode == http.StatusOK:
	case response.StatusCode == http.StatusServiceUnavailable && bytes.Contains(c.answer.Bytes(), overloadedCode):
		err = errRefused
	default:
		err = fmt.Errorf("answered %d: %s", response.StatusCode, c.answer.Bytes())
	}
	return c.answer.Bytes(), err
}

var overloadedCode = []byte(`"code":"` + workflow.Overloaded + `"`)

// dial connects a client, identified by a header, until the round ends.
func (e *env) dial(ctx context.Context, address, caller string) (*client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp4", address)
	if err != nil {
		return nil, err
	}
	e.later(conn.Close)
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), caller: caller}, nil
}

// restScenario is a scenario of authenticated clients, each with a connection of its own.
func restScenario(name string, n int, by knownBy, of func(e *env, c *client, i int) caller) *scenario {
	return &scenario{name: name, floor: floorMany, open: func(ctx context.Context, e *env) ([]caller, error) {
		identify, headers, err := by(ctx, e, n)
		if err != nil {
			return nil, err
		}
		_, address, err := e.serve(ctx, engine.Config{}, func(c *api.Config) { c.Identify = identify })
		if err != nil {
			return nil, err
		}
		callers := make([]caller, n)
		for i := range callers {
			c, err := e.dial(ctx, address, headers[i])
			if err != nil {
				return nil, err
			}
			callers[i] = of(e, c, i)
		}
		return callers, nil
	}}
}

// restSingles posts one transition after the other, each to an order that it
// addresses by the customer's own number.
func restSingles(name string, clients int, by knownBy) *scenario {
	return restScenario(name, clients, by, func(e *env, c *client, i int) caller {
		own, k := share(e.orders, i, clients), 0
		return func(context.Context) (int, error) {
			path := "/v1/workflows/" + workflowName + "/keys/" + own[k%len(own)].key + "/" + flipping
			_, err := c.post(path, commandKey(firstCaller+i, k), []byte(changeJSON))
			k++
			return 1, err
		}
	})
}

// restBulk posts arrays of transitions.
func restBulk(name string, clients, items int) *scenario {
	done := []byte(`{"status":200,"replayed":false,`)
	return restScenario(name, clients, byName, func(e *env, c *client, i int) caller {
		next := flips(e, i, clients)
		return func(context.Context) (int, error) {
			list := make([]wire.BulkCommand, items)
			for i := range list {
				f := next()
				list[i] = wire.BulkCommand{Workflow: f.Workflow, Transition: f.Transition, Instance: f.Instance.String(),
					Key: f.Key, Payload: jsontext.Value(f.Payload)}
			}
			body, err := json.Marshal(list)
			if err != nil {
				return 0, err
			}
			answer, err := c.post("/v1/commands", "", body)
			if err == nil && bytes.Count(answer, done) != items {
				err = errors.New("not all of a bulk request was done: " + string(answer[:min(len(answer), 500)]))
			}
			return items, err
		}
	})
}
