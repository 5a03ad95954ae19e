package fold

import "slices"

// State is where a fine stands.
type State string

// The states of a fine. The last three are final.
const (
	None        State = "" // its creation has not been accepted
	Issued      State = "issued"
	Sent        State = "sent"
	Notified    State = "notified"
	Penalised   State = "penalised"
	Appealed    State = "appealed"
	Forwarded   State = "forwarded"
	Ordered     State = "ordered"
	OrderServed State = "order_served"
	BeforeJudge State = "before_judge"
	Paid        State = "paid"
	Dismissed   State = "dismissed"
	Collection  State = "credit_collection"
)

// Terms, in days.
const (
	payTerm = 60 // from notification, to pay the reduced sum
	inPost  = 3  // a payment in time may reach the register this much later
)

// fine is a case as the rules see it. Sums are cents; a zero date is "not yet".
type fine struct {
	state State

	amount, raised, expenses, paid                int64
	sentOn, notifiedOn, raisedOn, orderedOn, last date
}

// owed is what settles the fine with a payment entered on the given day.
func (f *fine) owed(on date) int64 {
	inTime := on <= f.notifiedOn+payTerm+inPost
	if f.raisedOn == 0 || inTime {
		return f.amount + f.expenses
	}
	return f.raised + f.expenses
}

// rule is one line of the law: a transition may have several, with from-sets
// that do not meet. An empty to means that the fine stays where it is. guard
// sees the fine alone, apply the event too; each returns why not, or "". apply
// may choose another target than to.
type rule struct {
	name  string
	from  []State
	to    State
	guard func(*fine) string
	apply func(*fine, *event) (target State, reason string)
}

var (
	open       = []State{Issued, Sent, Notified, Penalised, Appealed, Forwarded, Ordered, OrderServed, BeforeJudge}
	appealable = []State{Issued, Sent, Notified, Penalised}
	contested  = []State{Appealed, Forwarded, BeforeJudge}
)

var law = []rule{
	{create, []State{None}, Issued, free, createFine},
	{"send_fine", []State{Issued}, Sent, unsent, sendFine},
	{"send_fine", contested, "", unsent, sendFine},
	{"insert_fine_notification", []State{Sent}, Notified, unserved, insertNotification},
	{"insert_fine_notification", contested, "", unserved, insertNotification},
	{"add_penalty", []State{Notified}, Penalised, unraised, addPenalty},
	{"add_penalty", []State{Appealed, Forwarded, Ordered, OrderServed, BeforeJudge}, "", unraised, addPenalty},
	{"payment", open, "", free, payment},
	{"insert_date_appeal_to_prefecture", appealable, Appealed, free, nothingElse},
	{"send_appeal_to_prefecture", []State{Appealed}, Forwarded, free, ruling},
	{"receive_result_appeal_from_prefecture", []State{Appealed, Forwarded}, Ordered, free, receiveResult},
	{"notify_result_appeal_to_offender", []State{Ordered}, OrderServed, free, nothingElse},
	{"appeal_to_judge", append(slices.Clone(appealable), Ordered, OrderServed), BeforeJudge, free, ruling},
	{"send_for_credit_collection", []State{Penalised, OrderServed, BeforeJudge}, Collection, titled, collect},
}

const create = "create_fine"

func free(*fine) string { return "" }

func unsent(f *fine) string {
	if f.sentOn != 0 {
		return "the notice was sent before"
	}
	return ""
}

func unserved(f *fine) string {
	switch {
	case f.sentOn == 0:
		return "the notice was never sent"
	case f.notifiedOn != 0:
		return "the notice was served before"
	}
	return ""
}

func unraised(f *fine) string {
	switch {
	case f.notifiedOn == 0:
		return "the notice was never served, so the 60 days have not begun"
	case f.raisedOn != 0:
		return "the sum was raised before"
	}
	return ""
}

func titled(f *fine) string {
	if f.raisedOn == 0 && f.orderedOn == 0 {
		return "there is no enforceable title: neither raised nor ordered"
	}
	return ""
}

func createFine(f *fine, e *event) (State, string) {
	f.amount = e.amount
	return ruling(f, e)
}

func sendFine(f *fine, e *event) (State, string) {
	f.sentOn, f.expenses = e.on, e.expense
	return "", ""
}

func insertNotification(f *fine, e *event) (State, string) {
	f.notifiedOn = e.on
	return "", ""
}

func addPenalty(f *fine, e *event) (State, string) {
	switch {
	case e.on < f.notifiedOn+payTerm:
		return "", "the 60 days to pay are not over"
	case e.amount <= f.amount:
		return "", "the raised sum is not above the fine"
	}
	f.raisedOn, f.raised = e.on, e.amount
	return "", ""
}

func payment(f *fine, e *event) (State, string) {
	f.paid += e.payment
	if f.paid >= f.owed(e.on) {
		return Paid, ""
	}
	return "", ""
}

// ruling is an event that a dismissal code turns into the end of the case.
func ruling(_ *fine, e *event) (State, string) {
	if e.dismissal != "" {
		return Dismissed, ""
	}
	return "", ""
}

func receiveResult(f *fine, e *event) (State, string) {
	f.orderedOn = e.on
	return "", ""
}

func collect(f *fine, e *event) (State, string) {
	if f.paid >= f.owed(e.on) {
		return "", "nothing is owed"
	}
	return "", ""
}

func nothingElse(*fine, *event) (State, string) { return "", "" }

// Reasons that are not a rule's own. Pawl has them as error codes.
const (
	InvalidPayload    = "invalid_payload"    // stored nowhere: the command is malformed
	InstanceNotFound  = "instance_not_found" // stored nowhere: the case's creation was refused
	IllegalTransition = "illegal_transition" // like every rule's reason, stored as the command's answer
)

// step plays one event. It returns the fine after it, and the reason if it is
// refused, in which case the fine is the one given.
func step(f fine, e *event) (fine, string) {
	switch {
	case !e.valid():
		return f, InvalidPayload
	case f.state == None && e.transition != create:
		return f, InstanceNotFound
	}
	i := slices.IndexFunc(law, func(r rule) bool { return r.name == e.transition && slices.Contains(r.from, f.state) })
	if i < 0 {
		return f, IllegalTransition
	}
	r, next := law[i], f
	if reason := r.guard(&f); reason != "" {
		return f, reason
	}
	if e.on < f.last {
		return f, "dated before the case's last entry"
	}
	target, reason := r.apply(&next, e)
	if reason != "" {
		return f, reason
	}
	switch {
	case target != "":
		next.state = target
	case r.to != "":
		next.state = r.to
	}
	next.last = e.on
	return next, ""
}
