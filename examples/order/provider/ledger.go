package provider

// Entry is what the provider knows of a charge's key.
type Entry struct {
	Reference string `json:"reference,omitzero"` // "" while only refunds have named the key
	Amount    int64  `json:"amount,omitzero"`
	Requests  int    `json:"requests"` // to charge, with those that failed, hung or were lost
	Charges   int    `json:"charges"`  // that took the money
	Refunds   int    `json:"refunds"`  // that gave it back
	Voided    bool   `json:"voided,omitzero"`
}

// Ledger is what has happened, by the keys of charges. It is a copy.
func (p *Provider) Ledger() map[string]Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	ledger := make(map[string]Entry, len(p.accounts))
	for key, a := range p.accounts {
		e := Entry{Charges: a.charges, Refunds: a.refunds, Voided: a.voided}
		if a.first != nil {
			e.Reference, e.Amount = a.first.Reference, a.first.Amount
		}
		ledger[key] = e
	}
	// A key whose every request failed has no account.
	for r, n := range p.arrived {
		if r.Op == OpCharge {
			e := ledger[r.Key]
			e.Requests = n
			ledger[r.Key] = e
		}
	}
	return ledger
}
