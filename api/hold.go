package api

import (
	"net"
	"net/http"
	"slices"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/auth"
)

// The shares of the budget, in eighths. See docs/network.md.
const (
	partOfCallers    = 7 // of all callers but operators
	partOfTenant     = 4
	partOfCredential = 2
	partOfUnknown    = 2 // of all requests without a credential: messages of the inbox, documents
	partOfAddress    = 1 // of those that come from one address
	partArriving     = 1 // of all requests until it is known who sends them
)

// hold holds memory for a request that its route lets through: also for a page of rows where the route answers with one. It frees what
// the request held before. Errors: RateLimited, Overloaded.
func (a *API) hold(w *answerWriter, r *request) error {
	w.holder.Done()
	h, err := a.budget.Open(r.Context(), a.shares(r)...)
	if err != nil {
		w.holder = nil
		return err
	}
	w.holder, r.holder = h, h
	if r.route.param(pageLimit.Name) != nil && !slices.Contains(r.route.media(), mediaEventStream) {
		return h.Take(r.Context(), budget.Page)
	}
	return nil
}

// shares are those that a request draws on. Operators draw on their credential's alone: they get in when others have used up the rest.
func (a *API) shares(r *request) []budget.Share {
	part, most := a.budget.Part, a.cfg.Limits.Open
	callers := budget.Share{Key: "callers", Bytes: part(partOfCallers)}
	if r.route.Grant == Public {
		return []budget.Share{callers, {Key: "unknown", Bytes: part(partOfUnknown)},
			{Key: "address " + remote(r.Request), Whose: "the address", Bytes: part(partOfAddress)}}
	}
	ours := budget.Share{Key: "credential " + credential(&r.caller), Whose: "the credential", Bytes: part(partOfCredential)}
	if operates(&r.caller) {
		return []budget.Share{ours}
	}
	ours.Requests = (most + 1) / 2
	return []budget.Share{callers, ours,
		{Key: "tenant " + r.caller.Tenant, Whose: "the tenant", Bytes: part(partOfTenant), Requests: most}}
}

// operates reports whether the caller is an operator of its tenant or of all.
func operates(c *Caller) bool { return c.May(Operate, auth.Target{}) }

// remote is the address that a request comes from, without its port.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// largestBody is the size of the largest body that a credential's share of so much memory has room for.
func largestBody(memory int64) int64 {
	return (memory/8*partOfCredential - budget.Request) / budget.PerByte
}

// holdAnswer holds memory for an answer that is large. Errors: RateLimited, Overloaded.
func holdAnswer(w http.ResponseWriter, body []byte) error {
	out, ok := w.(*answerWriter)
	if !ok || out.holder == nil || len(body) <= pieceSize {
		return nil
	}
	return out.holder.Take(out.ctx, int64(len(body)))
}
