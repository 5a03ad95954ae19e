package eventlog

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// Write writes a log as plain CSV, as Read reads it. It ends at the first error
// of the cases or of the writer.
func Write(w io.Writer, cases Cases) error {
	out := csv.NewWriter(w)
	if err := out.Write(header[:]); err != nil {
		return err
	}
	for c, err := range cases {
		if err != nil {
			return err
		}
		for _, e := range c.Events {
			row, err := e.row()
			if err != nil {
				return err
			}
			if err := out.Write(row[:]); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func (e Event) row() (row [columns]string, err error) {
	a := of(e.Transition)
	if a == nil {
		return row, fmt.Errorf("case %s, event %d: unknown transition %q", e.Case, e.Number, e.Transition)
	}
	row[colCase], row[colActivity] = e.Case, a.name
	// The zone is a matter of form: only the day is read again.
	row[colTime] = string(e.On) + "T00:00:00+01:00"
	for _, group := range [][]int{a.needs, a.may} {
		for _, i := range group {
			row[i] = e.text(i)
		}
	}
	return row, nil
}

func (e Event) text(column int) string {
	switch column {
	case colResource:
		return strconv.Itoa(e.Officer)
	case colArticle:
		return strconv.Itoa(e.Article)
	case colPoints:
		return strconv.Itoa(e.Points)
	case colAmount:
		return euros(e.AmountCents)
	case colExpense:
		return euros(e.ExpenseCents)
	case colPayment:
		return euros(e.PaymentCents)
	case colTotal:
		return euros(e.TotalPaymentsCents)
	case colVehicleClass:
		return e.VehicleClass
	case colNotificationType:
		return e.NotificationType
	case colLastSent:
		return e.LastSent
	case colDismissal:
		if e.Dismissal == "" {
			return noDismissal
		}
		return e.Dismissal
	}
	return ""
}

// euros writes cents as the log does.
func euros(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/100, cents%100)
}
