package remote

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/client"
)

func TestEachWorkflowHasItsColour(t *testing.T) {
	e := client.Event{Event: wire.Event{Position: 7, Type: "order.pay", Workflow: "order", Transition: "pay", From: "placed", State: "paid",
		Subject: "c:1\x1b[2J", BusinessKey: "c:1\x1b[2J", Actor: "ann", Time: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}}
	plain, painted := &tailing{}, &tailing{color: true}
	const at = "7  2030-01-02T03:04:05Z  "
	if got, want := plain.line(&e), at+"order#c:1\ufffd[2J  pay: placed -> paid, by ann"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got, want := painted.line(&e), at+painted.paint("order", "order#c:1\ufffd[2J")+"  pay: placed -> paid, by ann"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if order, fine := painted.paint("order", ""), painted.paint("fine", ""); order == fine || order != painted.paint("order", "") {
		t.Errorf("%q and %q", order, fine)
	}
	e.BusinessKey, e.Subject, e.Type, e.Actor, e.Instance = "", "x", "order.priced", "", uuid.MustParse("54c04d65-8e5e-83a7-8e1a-29ae15e80d03")
	if got, want := plain.line(&e), at+"order 54c04d65-8e5e-83a7-8e1a-29ae15e80d03  order.priced"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
