package bench

import (
	"fmt"

	"github.com/pawlhq/pawl/workflow"
)

// The second workflow of loaded tables: a parcel, which is found by declared
// attributes and has a start of another kind.
const (
	parcelName  = "parcel"
	registering = "register"
	scanning    = "scan"

	stateTravelling workflow.State = "travelling"
	stateDelivered  workflow.State = "delivered"
)

type parcelData struct {
	Customer string `json:"customer"`
	Depot    string `json:"depot"`
	Scans    int    `json:"scans"`
	Note     string `json:"note"`
}

type registerPayload struct {
	Number   string `json:"number" validate:"required,max=100"`
	Customer string `json:"customer" validate:"required,max=100"`
}

var parcels = workflow.Define(parcelName, 1,
	workflow.Start(registering, stateTravelling, func(_ *workflow.Call, d *parcelData, p registerPayload) error {
		d.Customer = p.Customer
		return nil
	}).BusinessKey(func(p registerPayload) string { return p.Number }),
	workflow.On(scanning, workflow.From(stateTravelling), workflow.Stay, func(_ *workflow.Call, d *parcelData, p changePayload) error {
		d.Scans++
		d.Depot, d.Note = fmt.Sprintf("depot-%03d", p.Desk), p.Note
		return nil
	}),
	workflow.On("deliver", workflow.From(stateTravelling), stateDelivered, func(*workflow.Call, *parcelData, workflow.None) error { return nil }),
).Final(stateDelivered).
	Attr("customer", func(d parcelData) string { return d.Customer }).
	Attr("depot", func(d parcelData) string { return d.Depot })
