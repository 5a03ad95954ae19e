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
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
)

// serve starts an engine and a real server of its API on the loopback
// interface. end stops both.
func (e *env) serve(ctx context.Context, c engine.Config) (_ *engine.Engine, address string, end func(), err error) {
	eng, stop, err := e.engine(ctx, c, false)
	if err != nil {
		return nil, "", nil, err
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	handler, err := api.New(eng, api.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, "", nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, err
	}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it ends with Close
	}()
	return eng, listener.Addr().String(), func() {
		_ = handler.Stop(context.Background()) // its context does not end
		_ = server.Close()                     // everybody has been answered
		<-served
		stop()
	}, nil
}

// client speaks HTTP/1.1 on one connection that it keeps. It does little else,
// so that what is measured is the server and not the client beside it.
type client struct {
	conn   net.Conn
	in     *bufio.Reader
	out    []byte
	answer bytes.Buffer
}

// post sends a command and returns the status and the body, which is valid
// until the next call.
func (c *client) post(path, key string, body []byte) (int, []byte, error) {
	b := c.out[:0]
	b = append(b, "POST "...)
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nPawl-Actor: "+actor+"\r\n"...)
	if key != "" {
		b = append(b, "Idempotency-Key: "...)
		b = append(b, key...)
		b = append(b, "\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	b = append(b, body...)
	c.out = b
	if _, err := c.conn.Write(b); err != nil {
		return 0, nil, err
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, nil, err
	}
	c.answer.Reset()
	_, err = c.answer.ReadFrom(response.Body)
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	return response.StatusCode, c.answer.Bytes(), err
}

// restScenario is a scenario of clients, each with a connection of its own.
func restScenario(name string, clients int, of func(e *env, c *client, number int) caller) *scenario {
	return &scenario{name: name, section: theAPI, floor: floorMany,
		run: closedLoop(func(ctx context.Context, e *env) ([]caller, func(), error) {
			_, address, stop, err := e.serve(ctx, engine.Config{})
			if err != nil {
				return nil, nil, err
			}
			callers := make([]caller, clients)
			var open []net.Conn
			end := func() {
				for _, conn := range open {
					_ = conn.Close() // nothing is under way on it
				}
				stop()
			}
			for i := range callers {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp4", address)
				if err != nil {
					end()
					return nil, nil, err
				}
				open = append(open, conn)
				callers[i] = of(e, &client{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, firstCaller+i)
			}
			return callers, end, nil
		})}
}

// restSingles posts one transition after the other, each to an order that it
// addresses by the customer's own number.
func restSingles(name string, clients int) *scenario {
	return restScenario(name, clients, func(e *env, c *client, number int) caller {
		own := share(e.orders, number-firstCaller, clients)
		paths := make([]string, len(own))
		for i, o := range own {
			paths[i] = "/v1/workflows/" + workflowName + "/keys/" + o.key + "/" + flipping
		}
		n := 0
		return func(context.Context) (int, error) {
			status, answer, err := c.post(paths[n%len(paths)], commandKey(number, n), []byte(changeJSON))
			n++
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("answered %d: %s", status, answer)
			}
			return 1, err
		}
	})
}

// restBulk posts arrays of transitions.
func restBulk(name string, clients, items int) *scenario {
	done := []byte(`{"status":200,"replayed":false,`)
	return restScenario(name, clients, func(e *env, c *client, number int) caller {
		next := flips(e, number, clients)
		return func(context.Context) (int, error) {
			list := make([]api.BulkCommand, items)
			for i := range list {
				f := next()
				list[i] = api.BulkCommand{Workflow: f.Workflow, Transition: f.Transition, Instance: f.Instance.String(),
					Key: f.Key, Payload: jsontext.Value(f.Payload)}
			}
			body, err := json.Marshal(list)
			if err != nil {
				return 0, err
			}
			status, answer, err := c.post("/v1/commands", "", body)
			if err != nil {
				return 0, err
			}
			if status != http.StatusOK || bytes.Count(answer, done) != items {
				return 0, errors.New("not all of a bulk request was done: " + string(answer[:min(len(answer), 500)]))
			}
			return items, nil
		}
	})
}
