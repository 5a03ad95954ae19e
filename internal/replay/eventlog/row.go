package eventlog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawlhq/pawl/examples/fines"
)

// noDismissal is how the log writes that nobody annulled the fine.
const noDismissal = "NIL"

// parseRow reads one row into an Event without its Number. It refuses a row
// whose columns are not those of its activity; whether the values make sense is
// for the workflow to say.
func parseRow(row []string) (Event, error) {
	a := named(row[colActivity])
	if a == nil {
		return Event{}, fmt.Errorf("unknown activity %q", row[colActivity])
	}
	if err := a.checkColumns(row); err != nil {
		return Event{}, err
	}
	e := Event{Case: row[colCase], Transition: a.transition}
	if !isCaseID(e.Case) {
		return Event{}, fmt.Errorf("%q is not a case number: 1 to 32 letters and digits", e.Case)
	}
	var err error
	if e.On, err = midnight(row[colTime]); err != nil {
		return Event{}, err
	}
	return e, e.fill(a, row)
}

func (a *activity) checkColumns(row []string) error {
	for i := colResource; i < columns; i++ {
		switch {
		case row[i] == "" && slices.Contains(a.needs, i):
			return fmt.Errorf("%s without %s", a.name, header[i])
		case row[i] != "" && !a.reads(i) && !slices.Contains(a.ignored, i):
			return fmt.Errorf("%s has no %s, but here is %q", a.name, header[i], row[i])
		}
	}
	return nil
}

func (e *Event) fill(a *activity, row []string) error {
	var errs []error
	for _, group := range [][]int{a.needs, a.may} {
		for _, i := range group {
			if row[i] == "" {
				continue
			}
			if err := e.set(i, row[i]); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", header[i], err))
			}
		}
	}
	return errors.Join(errs...)
}

func (e *Event) set(column int, s string) (err error) {
	switch column {
	case colResource:
		e.Officer, err = whole(s)
	case colArticle:
		e.Article, err = whole(s)
	case colPoints:
		e.Points, err = whole(s)
	case colAmount:
		e.AmountCents, err = cents(s)
	case colExpense:
		e.ExpenseCents, err = cents(s)
	case colPayment:
		e.PaymentCents, err = cents(s)
	case colTotal:
		e.TotalPaymentsCents, err = cents(s)
	case colVehicleClass:
		e.VehicleClass, err = code(s)
	case colNotificationType:
		e.NotificationType, err = code(s)
	case colLastSent:
		e.LastSent, err = code(s)
	case colDismissal:
		if s != noDismissal {
			e.Dismissal, err = code(s)
		}
	}
	return err
}

// isCaseID keeps case numbers to what is safe in a business key, in an
// idempotency key and in an address.
func isCaseID(s string) bool {
	return len(s) >= 1 && len(s) <= 32 && strings.IndexFunc(s, func(r rune) bool {
		return !('0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z')
	}) < 0
}

// midnight reads a time of the log. Every one is a local midnight, so that the
// day is all it says; another time would be a log of another kind.
func midnight(s string) (fines.Date, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return "", fmt.Errorf("%q is not a time like 2006-07-24T00:00:00+02:00", s)
	}
	if h, m, sec := t.Clock(); h != 0 || m != 0 || sec != 0 || t.Nanosecond() != 0 {
		return "", fmt.Errorf("%s is not a midnight", s)
	}
	return fines.DateOf(t), nil
}

func whole(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || s[0] == '+' {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return n, nil
}

// cents reads decimal euros with at most two decimals.
func cents(s string) (int64, error) {
	digits, negative := strings.CutPrefix(s, "-")
	euros, fraction, point := strings.Cut(digits, ".")
	if euros == "" || (point && fraction == "") || len(fraction) > 2 || strings.Trim(euros+fraction, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a sum like 35.0", s)
	}
	n, err := strconv.ParseInt(euros+(fraction + "00")[:2], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is too large a sum", s)
	}
	if negative {
		n = -n
	}
	return n, nil
}

func code(s string) (string, error) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("%q has characters that cannot be printed", s)
	}
	return s, nil
}
