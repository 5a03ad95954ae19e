package api_test

import (
	"github.com/pawlhq/pawl/workflow"
)

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
