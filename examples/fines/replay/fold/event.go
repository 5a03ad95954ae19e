package fold

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// date is a day, counted from 1970-01-01.
type date int

// event is one row of the log. Missing columns are zero; the dismissal code NIL is "".
type event struct {
	transition                 string
	on                         date
	officer, article, points   int
	amount, expense            int64
	payment, total             int64
	vehicleClass, dismissal    string
	notificationType, lastSent string
}

var columns = strings.Split("case,activity,time,resource,amount,article,vehicle_class,points,dismissal,expense,"+
	"payment_amount,total_payment_amount,notification_type,last_sent", ",")

// valid says what can be in a command at all.
func (e *event) valid() bool {
	code := utf8.RuneCountInString(e.dismissal) <= 1
	switch e.transition {
	case create:
		return sum(e.amount) && e.article >= 1 && e.article <= 408 && e.officer >= 1 && e.points >= 0 && e.points <= 20 &&
			slices.Contains([]string{"A", "C", "M", "R"}, e.vehicleClass) && code
	case "send_fine":
		return sum(e.expense)
	case "insert_fine_notification":
		return slices.Contains([]string{"P", "C"}, e.notificationType) && slices.Contains([]string{"", "P", "N", "C"}, e.lastSent)
	case "add_penalty":
		return sum(e.amount)
	case "payment":
		return sum(e.payment) && e.payment != 0 && sum(e.total)
	default:
		return code
	}
}

// sum reports whether the cents are between nothing and a million euros.
func sum(cents int64) bool { return cents >= 0 && cents <= 100_000_000 }

// parse reads a row, whose first column is the case.
func parse(row []string) (*event, error) {
	e := &event{
		transition:   strings.ReplaceAll(strings.ToLower(row[1]), " ", "_"),
		vehicleClass: row[6], dismissal: row[8], notificationType: row[12], lastSent: row[13],
	}
	if e.dismissal == "NIL" {
		e.dismissal = ""
	}
	if !slices.ContainsFunc(law, func(r rule) bool { return r.name == e.transition }) {
		return nil, fmt.Errorf("unknown activity %q", row[1])
	}
	// Every time in the log is a local midnight, so the date is all there is.
	at, err := time.Parse(time.RFC3339, row[2])
	if err != nil {
		return nil, err
	}
	if at.Hour() != 0 || at.Minute() != 0 || at.Second() != 0 {
		return nil, fmt.Errorf("%s is not a midnight", row[2])
	}
	y, m, d := at.Date()
	e.on = date(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
	err = errors.Join(
		whole(row[3], &e.officer), whole(row[5], &e.article), whole(row[7], &e.points),
		cents(row[4], &e.amount), cents(row[9], &e.expense), cents(row[10], &e.payment), cents(row[11], &e.total),
	)
	return e, err
}

// whole reads an integer; an absent one stays zero.
func whole(s string, n *int) (err error) {
	if s == "" {
		return nil
	}
	*n, err = strconv.Atoi(s)
	return err
}

// cents reads decimal euros with at most two decimals; an absent sum stays zero.
func cents(s string, n *int64) error {
	if s == "" {
		return nil
	}
	euros, frac, _ := strings.Cut(s, ".")
	if len(frac) > 2 {
		return fmt.Errorf("%q has more than two decimals", s)
	}
	v, err := strconv.ParseInt(euros+(frac + "00")[:2], 10, 64)
	*n = v
	return err
}
