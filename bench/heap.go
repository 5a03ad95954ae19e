package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The configured memory limit of a pipeline, in bytes: the queue, and a group for each connection, with the engine's defaults on up to four
// cores.
const configuredHeap = 128<<20 + (2+6)*4<<20

// bulky is a workflow whose instances are large.
type bulky struct {
	Text  string `json:"text"`
	Count int    `json:"count"`
}

type bulkyPayload struct {
	Text string `json:"text"`
}

var bulkyOnly = []workflow.Source{workflow.Define("bulky", 1,
	workflow.Start("fill", "full", func(_ *workflow.Call, d *bulky, p bulkyPayload) error {
		d.Text = p.Text
		return nil
	}),
	workflow.On("count", workflow.From("full"), workflow.Stay, func(_ *workflow.Call, d *bulky, _ workflow.None) error {
		d.Count++
		return nil
	}),
	workflow.On("close", workflow.From("full"), "closed", func(*workflow.Call, *bulky, workflow.None) error { return nil }),
).Final("closed")}

// fillBulky makes a large instance.
func fillBulky(tenant, key string, size int) transitions.Command {
	return transitions.Command{Tenant: tenant, Workflow: "bulky", Transition: "fill", Key: key, Actor: actor,
		Payload: []byte(`{"text":"` + strings.Repeat("x", size) + `"}`)}
}

// largeData is a scenario of callers, each with a large instance of its own, that only counts: small commands, much
// data.
func largeData(name string, n, size int) *scenario {
	return &scenario{name: name, apart: true, run: func(ctx context.Context, e *env) (*sample, error) {
		const tenant = "bulky"
		eng, err := e.engine(ctx, engine.Config{Workflows: bulkyOnly}, false)
		if err != nil {
			return nil, err
		}
		ids := make([]uuid.UUID, n)
		for i := range ids {
			r, err := eng.Submit(ctx, fillBulky(tenant, fmt.Sprint("fill", i), size))
			if err = errors.Join(err, r.Err()); err != nil {
				return nil, err
			}
			ids[i] = r.Instance
		}
		list := make([]caller, n)
		for i := range list {
			k := 0
			list[i] = func(ctx context.Context) (int, error) {
				k++
				r, err := eng.Submit(ctx, transitions.Command{Tenant: tenant, Workflow: "bulky", Transition: "count", Instance: ids[i],
					Key: fmt.Sprintf("%d-%d", i, k), Actor: actor})
				return 1, check(r, err, false)
			}
		}
		return e.driveHeap(ctx, list)
	}}
}

// driveHeap is drive, and tells how large the heap was at most, beyond what it was before.
func (e *env) driveHeap(ctx context.Context, list []caller) (*sample, error) {
	runtime.GC()
	before := heapNow()
	var most atomic.Uint64
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			most.Store(max(most.Load(), heapNow()))
			<-tick.C
		}
	}()
	s, err := e.drive(ctx, list)
	stop()
	<-watched
	if err != nil {
		return nil, err
	}
	s.heap = float64(max(most.Load(), before)-before) / configuredHeap
	return s, nil
}

// heapNow is what the heap's objects take, dead ones that were not collected yet among them.
func heapNow() uint64 {
	read := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(read)
	return read[0].Value.Uint64()
}
