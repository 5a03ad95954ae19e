package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const headerAuthorization = "Authorization"

// identify returns the sender of a request. A credential from a place other than the header Authorization, which browsers cannot set
// everywhere, is moved there first, so that Identify reads one place.
func (a *API) identify(r *request) (Caller, error) {
	var credential string
	var err error
	switch {
	case r.route.Operations != nil:
		r.Request, credential, err = stream.Offered(r.Request)
	case a.cfg.Tickets != nil:
		credential, err = r.cookie()
	}
	if err != nil {
		return Caller{}, err
	}
	if credential != "" {
		if len(r.Header[headerAuthorization]) > 0 {
			return Caller{}, auth.Refuse(auth.Malformed, "there are two credentials")
		}
		r.Request = bearing(r.Request, credential)
	}
	return a.callerOf(r.Request)
}

// bearing is the request with a credential.
func bearing(r *http.Request, credential string) *http.Request {
	own := r.WithContext(r.Context()) // a copy
	own.Header = r.Header.Clone()
	own.Header.Set(headerAuthorization, "Bearer "+credential)
	return own
}

// callerOf returns the owner of the credential in the header Authorization. Tickets are verified even without authentication, so that a
// ticket never grants more than it says.
func (a *API) callerOf(r *http.Request) (Caller, error) {
	if a.cfg.Tickets == nil || !slices.ContainsFunc(r.Header[headerAuthorization], hasTicket) {
		c, err := a.cfg.Identify(r)
		if err == nil && c.Tenant == "" {
			c.Tenant = transitions.DefaultTenant // as everywhere; "" would read what is of any
		}
		return c, err
	}
	if a.local {
		if err := fromThisMachine(r); err != nil {
			return Caller{}, err
		}
	}
	return Bearer(a.cfg.Tickets.Verify)(r)
}

func hasTicket(authorization string) bool {
	return slices.ContainsFunc(strings.Fields(authorization), ticket.Is)
}

// cookie is the ticket of a request for an event stream that a page of this host has made, "" for none: an EventSource sends no other
// credential. Nothing else is done for a cookie: browsers send it whether or not the page wants that.
func (r *request) cookie() (string, error) {
	if r.Method != http.MethodGet || !r.route.streams() || len(r.Header[headerAuthorization]) > 0 {
		return "", nil
	}
	cookies := r.CookiesNamed(cookieOfTicket)
	if len(cookies) == 0 || r.Header.Get("Sec-Fetch-Site") != "same-origin" || accepted(r.Request, r.route.media()...) != mediaEventStream {
		return "", nil
	}
	if len(cookies) > 1 || !ticket.Is(cookies[0].Value) {
		return "", auth.Refuse(auth.Malformed, "the cookie "+cookieOfTicket+" is not one ticket")
	}
	return cookies[0].Value, nil
}

// Bearer identifies callers by the credential in the header Authorization (RFC 6750, section 2.1), with verify, whose errors are returned
// unchanged. Callers cannot use the headers that [Loopback] accepts, except Pawl-Actor with the grant to act as others.
func Bearer(verify func(ctx context.Context, credential string) (auth.Principal, error)) Identify {
	return func(r *http.Request) (Caller, error) {
		values := r.Header[headerAuthorization]
		if len(values) == 0 {
			return Caller{}, auth.Refuse(auth.Missing, "a credential is required, in the header Authorization: Bearer …")
		}
		scheme, credential, _ := strings.Cut(values[0], " ")
		if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || credential == "" {
			return Caller{}, auth.Refuse(auth.Malformed, "the header Authorization is not one of Bearer and a credential")
		}
		for _, name := range ofCallers {
			if name != headerActor && len(r.Header[name]) > 0 { // see ActAs
				return Caller{}, workflow.Errorf(workflow.InvalidRequest, "the header %s means nothing here: the credential says who calls", name)
			}
		}
		return verify(r.Context(), strings.TrimSpace(credential))
	}
}
