package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Delivery is the data of the workflow whose transitions take time.
type Delivery struct {
	Signed string `json:"signed,omitempty"`
	Why    string `json:"why,omitempty"`
}

type Deliver struct {
	Door     int  `json:"door" validate:"min=0"`
	Stubborn bool `json:"stubborn,omitzero"` // only the test ends it
}

type Proof struct {
	Signed string `json:"signed"`
}

const (
	booked    workflow.State = "booked"
	underway  workflow.State = "underway"
	entrusted workflow.State = "entrusted"
	delivered workflow.State = "delivered"
	returned  workflow.State = "returned"
)

// courier does the work of a server's deliveries as its test says.
type courier struct {
	t      testing.TB
	visits chan visit
}

// visit is an attempt that waits for the test.
type visit struct {
	*workflow.Attempt
	ctx context.Context
	end chan<- visitEnd
}

type visitEnd struct {
	proof Proof
	err   error
}

func newCourier(t testing.TB) *courier { return &courier{t: t, visits: make(chan visit)} }

func (c *courier) deliver(ctx context.Context, a *workflow.Attempt, _ Delivery, p Deliver) (Proof, error) {
	end, done := make(chan visitEnd, 1), ctx.Done()
	select {
	case c.visits <- visit{a, ctx, end}:
	case <-done:
		return Proof{}, context.Cause(ctx)
	}
	if p.Stubborn {
		done = nil
	}
	select {
	case e := <-end:
		return e.proof, e.err
	case <-done:
		return Proof{}, context.Cause(ctx)
	}
}

// workflow has two ways to deliver. A courier must not be sent again while the outcome of the first delivery is unknown.
func (c *courier) workflow() workflow.Source {
	signed := func(_ *workflow.Call, d *Delivery, p Proof) error {
		d.Signed = p.Signed
		return nil
	}
	why := func(_ *workflow.Call, d *Delivery, f workflow.Failure) error {
		d.Why = f.Message
		return nil
	}
	retry := workflow.Retry{Attempts: 3, First: time.Millisecond, Max: time.Millisecond}
	return workflow.Define("delivery", 1,
		workflow.Start("book", booked, func(*workflow.Call, *Delivery, workflow.None) error { return nil }),
		workflow.Do("deliver", workflow.From(booked, returned), underway, delivered, c.deliver, signed).OrElse(returned, why).Retry(retry),
		workflow.Do("entrust", workflow.From(booked), entrusted, delivered, c.deliver, signed).OrElse(returned, why).Retry(retry).AskOperator(),
		workflow.On("note", workflow.From(booked, returned), workflow.Stay, func(*workflow.Call, *Delivery, workflow.None) error { return nil }),
	).Final(delivered)
}

// visit waits for the next attempt.
func (s *server) visit() visit {
	s.t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case v := <-s.courier.visits:
		return v
	case <-limit.C:
		s.t.Fatal("nobody began to work within a minute")
		return visit{}
	}
}

// signed ends the attempt well.
func (v visit) signed(by string) { v.end <- visitEnd{proof: Proof{by}} }

// failed ends it with an error.
func (v visit) failed(err error) { v.end <- visitEnd{err: err} }

// report tells of progress.
func (s *server) report(v visit, percent int) {
	s.t.Helper()
	require.NoError(s.t, v.Report(map[string]int{"percent": percent}))
}

// booked creates a delivery and returns its id.
func (s *server) booked() uuid.UUID {
	s.t.Helper()
	a := s.post("/v1/workflows/delivery/book", uuid.NewString(), `{}`)
	a.want(s.t, 201)
	return read[transitions.Result](s.t, a).Instance
}
