package api

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	// maxTicketRequest is the longest body of one in bytes.
	maxTicketRequest = 64 << 10
	// ticketSeconds is how long a ticket lasts unless the caller says it.
	ticketSeconds = 300
)

// issueTicket makes a ticket of what the caller himself is allowed to do. Nothing is written for it.
func (a *API) issueTicket(w http.ResponseWriter, r *request) error {
	switch {
	case a.cfg.Tickets == nil:
		return workflow.Errorf(workflow.NotFound, "browser tickets are disabled")
	case r.caller.Proof.Kind == auth.Ticket:
		return r.caller.Denied("a ticket is not for asking for another one")
	}
	in, err := readJSON[wire.TicketRequest](a, w, r)
	if err != nil {
		return err
	}
	t, err := a.ticketFor(r, &in)
	if err != nil {
		return err
	}
	text, err := a.cfg.Tickets.Issue(r.Context(), t)
	if err != nil {
		return err
	}
	if in.Cookie {
		http.SetCookie(w, ticketCookie(r, text, t.Until))
	}
	w.Header().Set("Cache-Control", "no-store")
	return sendJSON(w, http.StatusCreated, wire.Ticket{Ticket: text, Until: t.Until.UTC()})
}

// ticketFor returns the ticket that a caller requests, if the caller has all of its rights. Errors: InvalidRequest; those of may.
func (a *API) ticketFor(r *request, in *wire.TicketRequest) (*ticket.Ticket, error) {
	c := &r.caller
	t := &ticket.Ticket{Tenant: c.Tenant, Actor: c.Actor, Roles: in.Roles, By: c.Proof.String()}
	var err error
	if t.Until, err = ticketUntil(c, in.Seconds); err != nil {
		return nil, err
	}
	for i, text := range in.Grants {
		g, err := auth.ParseGrant(text)
		if err != nil {
			return nil, invalidTicket(fmt.Sprintf("/grants/%d", i), err.Error())
		}
		t.Grants = append(t.Grants, g)
	}
	if in.Actor != nil {
		t.Actor = *in.Actor
	}
	other := t.Actor != c.Actor
	if other {
		t.By += " by " + c.Actor
	}
	if c.Proof.Kind == auth.APIKey {
		t.Key = c.Proof.By
	}
	if err := t.Check(); err != nil {
		return nil, invalidTicket("", err.Error())
	}
	return t, a.mayPassOn(r, t, other)
}

// ticketUntil is when a ticket ends: after the seconds that are asked for, and with the caller's own credential.
func ticketUntil(c *Caller, asked *int64) (time.Time, error) {
	n := int64(ticketSeconds)
	if asked != nil {
		n = *asked
	}
	if most := int64(ticket.Longest / time.Second); n < 1 || n > most {
		return time.Time{}, invalidTicket("/seconds", fmt.Sprintf("is not from 1 to %d", most))
	}
	until := time.Now().Add(time.Duration(n) * time.Second)
	if !c.Until.IsZero() && c.Until.Before(until) {
		until = c.Until
	}
	return until, nil
}

func invalidTicket(pointer, problem string) error {
	return &workflow.Error{Code: workflow.InvalidRequest, Message: "the ticket does not exist: " + problem,
		Fields: []workflow.FieldError{{Pointer: pointer, Message: problem}}}
}

// mayPassOn refuses a ticket that could do more than the caller. Errors: Forbidden, InstanceNotFound; those of reading an instance.
func (a *API) mayPassOn(r *request, t *ticket.Ticket, other bool) error {
	c := &r.caller
	for _, role := range t.Roles {
		if !transitions.HasRole(c.Roles, role) {
			return c.Denied("the ticket would have a role that the caller has not")
		}
	}
	if other {
		if err := mayAny(c, ActAs); err != nil {
			return err
		}
	}
	for _, g := range t.Grants {
		rights := []auth.Right{g.Right}
		if other && g.Right == Submit {
			rights = append(rights, ActAs)
		}
		for _, right := range rights {
			if err := a.may(r.Context(), c, right, g.Target); err != nil {
				return err
			}
		}
	}
	return nil
}

// cookieOfTicket is the cookie that has a ticket for an EventSource, which sends no header of its page's.
const cookieOfTicket = "pawl_ticket"

// ticketCookie is sent by browsers to this host alone, by pages of its own alone, and shown to no script. It is sent without TLS only
// on this machine.
func ticketCookie(r *request, text string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: cookieOfTicket, Value: text, Path: r.prefix + "/v1/", MaxAge: max(1, int(time.Until(until).Seconds())),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || !isLoopback(r.Host)}
}

// streams reports whether a route can answer with an event stream.
func (r *Route) streams() bool {
	return r.Method == http.MethodGet && slices.Contains(r.media(), mediaEventStream)
}
