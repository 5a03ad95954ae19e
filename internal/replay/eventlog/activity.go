package eventlog

import "slices"

// The transitions of the workflow, as the log's activities name them.
const (
	createFine         = "create_fine"
	sendFine           = "send_fine"
	insertNotification = "insert_fine_notification"
	addPenalty         = "add_penalty"
	payment            = "payment"
	insertAppeal       = "insert_date_appeal_to_prefecture"
	sendAppeal         = "send_appeal_to_prefecture"
	receiveResult      = "receive_result_appeal_from_prefecture"
	notifyResult       = "notify_result_appeal_to_offender"
	appealToJudge      = "appeal_to_judge"
	sendForCollection  = "send_for_credit_collection"
)

// The columns of a row, by index.
const (
	colCase = iota
	colActivity
	colTime
	colResource
	colAmount
	colArticle
	colVehicleClass
	colPoints
	colDismissal
	colExpense
	colPayment
	colTotal
	colNotificationType
	colLastSent
	columns
)

var header = [columns]string{"case", "activity", "time", "resource", "amount", "article", "vehicle_class", "points", "dismissal",
	"expense", "payment_amount", "total_payment_amount", "notification_type", "last_sent"}

// activity says which columns its rows have, besides case, activity and time.
type activity struct {
	name       string
	transition string
	needs      []int // never empty
	may        []int // read where they are there
	ignored    []int // always 0 in the log, and nothing in the workflow
}

var activities = []activity{
	{name: "Create Fine", transition: createFine, ignored: []int{colTotal},
		needs: []int{colResource, colAmount, colArticle, colVehicleClass, colPoints, colDismissal}},
	{name: "Send Fine", transition: sendFine, needs: []int{colExpense}},
	{name: "Insert Fine Notification", transition: insertNotification, needs: []int{colNotificationType}, may: []int{colLastSent}},
	{name: "Add penalty", transition: addPenalty, needs: []int{colAmount}},
	{name: "Payment", transition: payment, needs: []int{colPayment, colTotal}},
	{name: "Insert Date Appeal to Prefecture", transition: insertAppeal},
	{name: "Send Appeal to Prefecture", transition: sendAppeal, needs: []int{colDismissal}},
	{name: "Receive Result Appeal from Prefecture", transition: receiveResult},
	{name: "Notify Result Appeal to Offender", transition: notifyResult},
	{name: "Appeal to Judge", transition: appealToJudge, needs: []int{colDismissal}, ignored: []int{colResource}},
	{name: "Send for Credit Collection", transition: sendForCollection},
}

func (a *activity) reads(column int) bool {
	return slices.Contains(a.needs, column) || slices.Contains(a.may, column)
}

func named(name string) *activity {
	i := slices.IndexFunc(activities, func(a activity) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return &activities[i]
}

func of(transition string) *activity {
	i := slices.IndexFunc(activities, func(a activity) bool { return a.transition == transition })
	if i < 0 {
		return nil
	}
	return &activities[i]
}
