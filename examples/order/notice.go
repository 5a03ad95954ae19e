package order

import "github.com/pawlhq/pawl/workflow"

// PaymentNotices is the consumer of the webhooks that the payment provider sends.
const PaymentNotices = "payments"

// Notice is a webhook of the payment provider. It has more in it than is read here.
type Notice struct {
	Type string `json:"type" validate:"required"`
	Data struct {
		Reference string `json:"reference"` // the business key of the order, as it was given with the charge
		Reason    string `json:"reason"`
	} `json:"data"`
}

// abandoned cancels an order whose customer has cancelled at the provider. Other notices repeat the charge's own answer.
func abandoned(_ workflow.Message, n Notice) (workflow.Address, Cancel, error) {
	if n.Type != "payment.abandoned" {
		return workflow.Address{}, Cancel{}, workflow.ErrIgnored
	}
	return workflow.Address{BusinessKey: n.Data.Reference}, Cancel{Reason: n.Data.Reason}, nil
}
