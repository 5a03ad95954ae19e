package fines

import (
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/workflow"
)

// The states of a fine say whose move it is and which term runs. The last three
// are final: a double payment is a refund, not a state of the fine.
const (
	Issued           workflow.State = "issued"            // the violation is recorded, nothing was sent
	Sent             workflow.State = "sent"              // the notice is in the post
	Notified         workflow.State = "notified"          // the notice is served; 60 days to pay the reduced sum or to appeal
	Penalised        workflow.State = "penalised"         // unpaid: raised to half the maximum and expenses, and enforceable (art. 203 c. 3)
	Appealed         workflow.State = "appealed"          // an appeal to the prefect is filed; the police must send the papers (art. 203 c. 2)
	Forwarded        workflow.State = "forwarded"         // the prefect has the papers and must decide
	Ordered          workflow.State = "ordered"           // the prefect upheld the fine and ordered payment
	OrderServed      workflow.State = "order_served"      // his order is served: pay it or oppose it
	BeforeJudge      workflow.State = "before_judge"      // the notice or the order is before the justice of the peace
	Paid             workflow.State = "paid"              // settled
	Dismissed        workflow.State = "dismissed"         // annulled by the office, the prefect or the judge
	CreditCollection workflow.State = "credit_collection" // on the collector's roll
)

var (
	from = workflow.From

	// Whoever has a notice, or is about to, may contest it.
	contestable = from(Issued, Sent, Notified, Penalised)
	// An appeal does not stop the notice that is on its way.
	contested = from(Appealed, Forwarded, BeforeJudge)
	// Nor does it stop the term to pay: what will be owed if the appeal fails is
	// settled meanwhile, and only collection waits for the outcome.
	termRuns = from(Appealed, Forwarded, Ordered, OrderServed, BeforeJudge)
	open     = from(Issued, Sent, Notified, Penalised, Appealed, Forwarded, Ordered, OrderServed, BeforeJudge)
)

// Workflow declares a fine. The transitions are named after the activities of
// the register, and the case number is the business key: creating a case twice
// answers with the one that exists.
//
// There are two ways to the raised sum. A register that works as the one of the
// log did enters it, by "add_penalty". A fine that was recorded with the maximum
// that the law allows is raised by a timer, by "raise", and needs no clerk.
var Workflow = define(1)

// define declares a version of the fine, with what it has more than the others.
func define(version int, more ...workflow.Part[Fine]) *workflow.Definition[Fine] {
	return workflow.Define("fine", version, append(slices.Clone(parts), more...)...).
		At("term", append(from(Notified), termRuns...), raisedAt, "raise").
		Final(Paid, Dismissed, CreditCollection).
		Attr("article", func(f Fine) string { return strconv.Itoa(f.Article) }).
		Attr("officer", func(f Fine) string { return strconv.Itoa(f.Officer) })
}

// parts are what all versions have.
var parts = []workflow.Part[Fine]{
	workflow.Start("create_fine", Issued, createFine).Or(Dismissed).
		BusinessKey(func(p CreateFine) string { return p.Case }).
		Doc("A violation is recorded. With a dismissal code the office annuls it at once."),

	workflow.On("send_fine", from(Issued), Sent, sendFine).
		Guard("sent once", sentOnce).
		Doc("The notice is posted. Its expenses are added to what is due."),
	workflow.On("send_fine", contested, workflow.Stay, sendFine).
		Guard("sent once", sentOnce).
		Doc("The notice is posted although its recipient, knowing of it, has contested it already."),

	workflow.On("insert_fine_notification", from(Sent), Notified, insertFineNotification).
		Guard("sent before", sentBefore).Guard("served once", servedOnce).
		Doc("The notice was served: 60 days begin."),
	workflow.On("insert_fine_notification", contested, workflow.Stay, insertFineNotification).
		Guard("sent before", sentBefore).Guard("served once", servedOnce).
		Doc("The notice was served on somebody who has contested it already."),

	workflow.On("add_penalty", from(Notified), Penalised, addPenalty).
		Guard("served before", servedBefore).Guard("raised once", raisedOnce).
		Doc("The 60 days are over: a higher sum replaces the reduced one, and the notice can be enforced."),
	workflow.On("add_penalty", termRuns, workflow.Stay, addPenalty).
		Guard("served before", servedBefore).Guard("raised once", raisedOnce).
		Doc("The 60 days are over while the fine is contested: what is owed if the appeal fails."),

	workflow.On("raise", from(Notified), Penalised, raise).
		Guard("served before", servedBefore).Guard("raised once", raisedOnce).Guard("maximum known", maximumKnown).Guard("term over", termOver).
		Doc("The 60 days are over: half of the maximum replaces the reduced sum, by law and by itself."),
	workflow.On("raise", termRuns, workflow.Stay, raise).
		Guard("served before", servedBefore).Guard("raised once", raisedOnce).Guard("maximum known", maximumKnown).Guard("term over", termOver).
		Doc("The 60 days are over while the fine is contested: what is owed if the appeal fails."),

	workflow.On("payment", open, workflow.Stay, payment).Or(Paid).
		Doc("Money arrived. Too small a sum is kept on account (art. 389 of the regulation); the fine is settled when all that is owed is paid."),

	workflow.On("insert_date_appeal_to_prefecture", contestable, Appealed, insertAppeal).
		Doc("An appeal to the prefect. A late one goes to him as well: to say that it is late is his."),
	workflow.On("send_appeal_to_prefecture", from(Appealed), Forwarded, sendAppeal).Or(Dismissed).
		Doc("The papers go to the prefect. With a dismissal code he has annulled the fine."),
	workflow.On("receive_result_appeal_from_prefecture", from(Appealed, Forwarded), Ordered, receiveResult).
		Doc("The prefect upheld the fine. He may have been addressed directly (art. 203 c. 1-bis), without papers from here."),
	workflow.On("notify_result_appeal_to_offender", from(Ordered), OrderServed, notifyResult).
		Doc("The prefect's order was served."),
	workflow.On("appeal_to_judge", append(from(Ordered, OrderServed), contestable...), BeforeJudge, appealToJudge).Or(Dismissed).
		Doc("The notice or the prefect's order goes to the justice of the peace, never while the prefect has the case. " +
			"With a dismissal code the judge has annulled the fine."),

	workflow.On("send_for_credit_collection", from(Penalised, OrderServed, BeforeJudge), CreditCollection, sendForCollection).
		Guard("has a title", hasTitle).
		Doc("The debt goes to the collector; not while the prefect decides, nor before his order is served."),
}
