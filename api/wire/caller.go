package wire

import (
	"time"

	"github.com/pawlhq/pawl/auth"
)

// Me is who a caller is.
type Me struct {
	Tenant string    `json:"tenant"`
	Actor  string    `json:"actor"`
	Roles  []string  `json:"roles"`  // what workflows ask for; "*" is every role
	Grants []string  `json:"grants"` // what the interface asks for
	Proof  MeProof   `json:"proof"`
	Until  time.Time `json:"until,omitzero"` // when the credential ends
	Can    *MeCan    `json:"can,omitempty"`  // what was asked for
}

// MeProof is how it is known who it is.
type MeProof struct {
	Kind auth.Kind `json:"kind"`
	By   string    `json:"by,omitempty"` // the issuer of a token, the id of a key, the issuer of a ticket
}

// MeCan says whether a caller has a grant.
type MeCan struct {
	Grant   string `json:"grant"`
	Allowed bool   `json:"allowed"`
	Why     string `json:"why"` // the grant that allows it, or what is missing
}

// TicketRequest asks for a ticket.
type TicketRequest struct {
	Grants  []string `json:"grants"`
	Actor   *string  `json:"actor,omitzero"`   // the caller
	Roles   []string `json:"roles,omitzero"`   // none
	Seconds *int64   `json:"seconds,omitzero"` // 300
	Cookie  bool     `json:"cookie,omitzero"`
}

// Ticket is one that was made.
type Ticket struct {
	Ticket string    `json:"ticket"`
	Until  time.Time `json:"until"`
}
