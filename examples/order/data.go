package order

// Order is what is known of an order: the data of an instance.
type Order struct {
	Customer string `json:"customer"`
	Cart     string `json:"cart"`
	Total    int64  `json:"total"`    // in minor units of the currency: 129900 is 1,299.00 EUR
	Currency string `json:"currency"` // ISO 4217
	Method   string `json:"method,omitempty"`
	Charge   string `json:"charge,omitempty"`  // the provider's name for the payment
	Problem  string `json:"problem,omitempty"` // why the last payment or refund failed
	Carrier  string `json:"carrier,omitempty"`
	Tracking string `json:"tracking,omitempty"`
}

// Place is the payload of "place". The customer has no colon, so that the
// business key has one reading; see Key.
type Place struct {
	Customer string `json:"customer" validate:"required,max=100,excludes=:"`
	Cart     string `json:"cart" validate:"required,max=100"`
	Total    int64  `json:"total" validate:"gt=0"`
	Currency string `json:"currency" validate:"required,iso4217"`
}

// Pay is the payload of "pay".
type Pay struct {
	Method string `json:"method" validate:"required,oneof=card transfer invoice"`
}

// Ship is the payload of "ship".
type Ship struct {
	Carrier  string `json:"carrier" validate:"required,max=100"`
	Tracking string `json:"tracking" validate:"required,max=100"`
}

// Refund is the payload of "refund".
type Refund struct {
	Reason string `json:"reason" validate:"required,max=500"`
}

// Cancel is the payload of "cancel".
type Cancel struct {
	Reason string `json:"reason" validate:"required,max=500"`
}

// Key is the business key of an order: "customer:cart". It addresses the order without its id.
func Key(p Place) string { return p.Customer + ":" + p.Cart }
