package fines

import (
	"errors"

	"github.com/pawlhq/pawl/workflow"
)

// Reasons for refusals, as the clerk reads them. Conditions on the case alone are guards, so that they are known without a payload; the
// actions check the others.
var (
	errAlreadySent   = errors.New("the notice was sent before")
	errNotSent       = errors.New("the notice was never sent")
	errAlreadyServed = errors.New("the notice was served before")
	errNotServed     = errors.New("the notice was never served, so the 60 days have not begun")
	errAlreadyRaised = errors.New("the sum was raised before")
	errNoMaximum     = errors.New("the fine was recorded without its maximum, so the office adds the penalty")
	errNoTitle       = errors.New("there is no enforceable title: neither raised nor ordered")

	errOutOfOrder  = errors.New("dated before the case's last entry")
	errTermRuns    = errors.New("the 60 days to pay are not over")
	errNoRaise     = errors.New("the raised sum is not above the fine")
	errNothingOwed = errors.New("nothing is owed")
	errLowMaximum  = errors.New("half of the maximum is not above the fine")
)

func sentOnce(_ *workflow.Call, f Fine) error {
	if f.SentOn != "" {
		return errAlreadySent
	}
	return nil
}

func sentBefore(_ *workflow.Call, f Fine) error {
	if f.SentOn == "" {
		return errNotSent
	}
	return nil
}

func servedOnce(_ *workflow.Call, f Fine) error {
	if f.NotifiedOn != "" {
		return errAlreadyServed
	}
	return nil
}

func servedBefore(_ *workflow.Call, f Fine) error {
	if f.NotifiedOn == "" {
		return errNotServed
	}
	return nil
}

func raisedOnce(_ *workflow.Call, f Fine) error {
	if f.RaisedOn != "" {
		return errAlreadyRaised
	}
	return nil
}

// maximumKnown asks for what the sum can be raised to.
func maximumKnown(_ *workflow.Call, f Fine) error {
	if f.Maximum == 0 {
		return errNoMaximum
	}
	return nil
}

func termOver(c *workflow.Call, f Fine) error {
	if f.NotifiedOn != "" && c.Now().Before(f.NotifiedOn.Add(PayTerm).Time()) {
		return errTermRuns
	}
	return nil
}

// hasTitle asks for what can be enforced: the raised notice or the prefect's
// order.
func hasTitle(_ *workflow.Call, f Fine) error {
	if f.RaisedOn == "" && f.OrderedOn == "" {
		return errNoTitle
	}
	return nil
}
