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

// Parcel is the data of the workflow that the tests run: small, and with
// everything that the interface shows.
type Parcel struct {
	To      string `json:"to"`
	Weight  int    `json:"weight"`
	Stamped int    `json:"stamped"`
	Note    string `json:"note,omitempty"`
}

type Pack struct {
	To     string `json:"to" validate:"required,max=100"`
	Weight int    `json:"weight" validate:"min=0,max=1000"`
	Label  string `json:"label,omitempty"`
}

// Bulk makes large events.
type Bulk struct {
	Text string `json:"text"`
}

type Stamp struct {
	Price float64  `json:"price"`
	Tags  []string `json:"tags,omitempty"`
}

type Send struct {
	Via string `json:"via"`
}

const (
	packed workflow.State = "packed"
	sent   workflow.State = "sent"
	lost   workflow.State = "lost"
)

// parcel is found again by its label; a second one with the label is the first.
var parcel = workflow.Define("parcel", 1,
	workflow.Start("pack", packed, func(c *workflow.Call, d *Parcel, p Pack) error {
		*d = Parcel{To: p.To, Weight: p.Weight}
		return nil
	}),
	workflow.Start("label", packed, func(c *workflow.Call, d *Parcel, p Pack) error {
		*d = Parcel{To: p.To, Weight: p.Weight}
		return nil
	}).BusinessKey(func(p Pack) string { return p.Label }).Receive("post", workflow.JSON(announced)),
	workflow.Start("claim", packed, func(c *workflow.Call, d *Parcel, p Pack) error {
		*d = Parcel{To: p.To, Weight: p.Weight}
		return nil
	}).BusinessKey(func(p Pack) string { return p.Label }).RefuseExisting(),
	workflow.Start("bulky", packed, func(c *workflow.Call, d *Parcel, p Bulk) error {
		d.Note = p.Text
		return nil
	}),
	workflow.On("stamp", workflow.From(packed), packed, func(c *workflow.Call, d *Parcel, p Stamp) error {
		d.Stamped++
		c.Emit("parcel.weighed", map[string]int{"weight": d.Weight})
		c.Emit("parcel.priced", map[string]float64{"price": p.Price})
		c.Return(map[string]int{"stamps": d.Stamped})
		return nil
	}).Receive("post", workflow.JSON(scanned)),
	workflow.On("send", workflow.From(packed), sent, func(c *workflow.Call, d *Parcel, p Send) error {
		if len(p.Via) < 200 { // a longer reason is a defect of the workflow
			c.Because("via " + p.Via)
		}
		return nil
	}).Role("clerk", "boss").NotBy("stamp").Guard("light enough", func(c *workflow.Call, d Parcel) error {
		if d.Weight > 100 {
			return workflow.Refuse("%d kg are too heavy", d.Weight)
		}
		return nil
	}),
	workflow.On("lose", workflow.From(packed), lost, func(c *workflow.Call, d *Parcel, _ workflow.None) error {
		panic("nobody knows where it is")
	}),
).Final(sent, lost).Roles("clerk", "boss").
	Attr("to", func(d Parcel) string { return d.To }).
	Attr("heavy", func(d Parcel) string {
		if d.Weight > 100 {
			return "yes"
		}
		return ""
	})
