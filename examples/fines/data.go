package fines

import "time"

// Fine is what is known of a fine: the data of an instance. All sums are in
// euro cents; a date that is missing means "not yet".
type Fine struct {
	Article      int    `json:"article"` // of the highway code, the rule that was broken
	VehicleClass string `json:"vehicle_class"`
	Points       int    `json:"points"` // taken from the licence
	Officer      int    `json:"officer"`

	Amount   int64 `json:"amount_cents"`            // the reduced sum, due within the term
	Maximum  int64 `json:"maximum_cents,omitzero"`  // what the law allows at most; 0 is not known here
	Raised   int64 `json:"raised_cents,omitzero"`   // replaces Amount once the term is over
	Expenses int64 `json:"expenses_cents,omitzero"` // procedure and postage, on top of either
	Paid     int64 `json:"paid_cents,omitzero"`

	IssuedOn      Date `json:"issued_on"`
	SentOn        Date `json:"sent_on,omitempty"`
	NotifiedOn    Date `json:"notified_on,omitempty"`
	RaisedOn      Date `json:"raised_on,omitempty"`
	AppealedOn    Date `json:"appealed_on,omitempty"`
	ForwardedOn   Date `json:"forwarded_on,omitempty"`
	OrderedOn     Date `json:"ordered_on,omitempty"`
	OrderServedOn Date `json:"order_served_on,omitempty"`
	JudgeOn       Date `json:"judge_on,omitempty"`
	CollectionOn  Date `json:"collection_on,omitempty"`
	LastOn        Date `json:"last_on"` // of the newest entry

	NotificationType string `json:"notification_type,omitempty"`
	LastSent         string `json:"last_sent,omitempty"`
	Dismissal        string `json:"dismissal,omitempty"` // the code of whoever annulled the fine
}

// Terms, in days.
const (
	// PayTerm runs from the service of the notice: to pay the reduced sum, or to
	// appeal (art. 203).
	PayTerm = 60
	// InPost is the number of days after which a payment made in time may be entered. It is not a rule of law, but the office's practice in
	// the log.
	InPost = 3
)

// raisedAt is when the term to pay is over and the sum is raised by itself. The
// zero time is never: to half of what cannot be told, or not again.
func raisedAt(f Fine) time.Time {
	if f.Maximum == 0 || f.NotifiedOn == "" || f.RaisedOn != "" {
		return time.Time{}
	}
	return f.NotifiedOn.Add(PayTerm).Time()
}

// Owed is the sum, in cents, that settles the fine with a payment entered on that day. Earlier payments count towards it.
func (f *Fine) Owed(on Date) int64 {
	if f.RaisedOn == "" || on <= f.NotifiedOn.Add(PayTerm+InPost) {
		return f.Amount + f.Expenses
	}
	return f.Raised + f.Expenses
}

// Balance is the result that "payment" and "add_penalty" give to their caller.
type Balance struct {
	DueCents int64 `json:"due_cents"` // below zero: paid too much
}

// CreateFine is the payload of "create_fine". Sums are pointers in the payloads
// where zero is a sum like any other: so nothing can be left out by mistake. No
// sum is above a million euros, so no arithmetic can overflow.
type CreateFine struct {
	Case         string `json:"case" validate:"required,alphanum,max=32"` // the business key
	On           Date   `json:"on" validate:"required,datetime=2006-01-02"`
	AmountCents  *int64 `json:"amount_cents" validate:"required,gte=0,lte=100000000"`
	Article      int    `json:"article" validate:"gte=1,lte=408"`
	VehicleClass string `json:"vehicle_class" validate:"oneof=A C M R"`
	Points       int    `json:"points,omitempty" validate:"gte=0,lte=20"`
	Officer      int    `json:"officer" validate:"gte=1"`
	MaximumCents int64  `json:"maximum_cents,omitempty" validate:"gte=0,lte=100000000"` // see Fine.Maximum
	Dismissal    string `json:"dismissal,omitempty" validate:"omitempty,len=1"`         // annulled as soon as issued
}

// SendFine is the payload of "send_fine".
type SendFine struct {
	On           Date   `json:"on" validate:"required,datetime=2006-01-02"`
	ExpenseCents *int64 `json:"expense_cents" validate:"required,gte=0,lte=100000000"`
}

// InsertFineNotification is the payload of "insert_fine_notification". The
// codes are the register's own.
type InsertFineNotification struct {
	On               Date   `json:"on" validate:"required,datetime=2006-01-02"`
	NotificationType string `json:"notification_type" validate:"oneof=P C"`
	LastSent         string `json:"last_sent,omitempty" validate:"omitempty,oneof=P N C"`
}

// AddPenalty is the payload of "add_penalty". The amount is the raised sum, not
// what it adds.
type AddPenalty struct {
	On          Date   `json:"on" validate:"required,datetime=2006-01-02"`
	AmountCents *int64 `json:"amount_cents" validate:"required,gte=0,lte=100000000"`
}

// Payment is the payload of "payment". The total is the register's own running
// total, which is kept in the history and decides nothing.
type Payment struct {
	On          Date  `json:"on" validate:"required,datetime=2006-01-02"`
	AmountCents int64 `json:"amount_cents" validate:"gt=0,lte=100000000"`
	TotalCents  int64 `json:"total_cents,omitempty" validate:"gte=0,lte=100000000"`
}

// Ruling is the payload of "send_appeal_to_prefecture" and "appeal_to_judge": a
// dismissal code means that the fine was annulled there.
type Ruling struct {
	On        Date   `json:"on" validate:"required,datetime=2006-01-02"`
	Dismissal string `json:"dismissal,omitempty" validate:"omitempty,len=1"`
}

// Dated is the payload of the transitions that say only when.
type Dated struct {
	On Date `json:"on" validate:"required,datetime=2006-01-02"`
}
