package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/examples/order/page"
)

// access is the chapter about who may do what: a machine with a key, and a browser with a ticket.
func (s *story) access(ctx context.Context) {
	s.title("A key that may only pay, and a ticket for one order")
	const theOrder = "/v1/workflows/order/keys/c-1:k-15"
	s.narrate("On a network every caller needs a credential. An operator creates a key for the card terminals: it may pay\n" +
		"orders, and nothing else. Its text is shown once; the database has a hash of it.")
	pays := s.key(ctx, "terminals", "submit:order/pay")
	s.received("%s", pays)
	sells := s.key(ctx, "shop", strings.Fields(page.Grants)...)
	s.guard(ctx, sells)
	s.send(ctx, post("/v1/workflows/order/place", "checkout-k-15", `{"customer":"c-1","cart":"k-15","total":4200,"currency":"EUR"}`))
	terminal := func(r request) request { return s.guarded(r, pays) }
	s.ask(ctx, "A terminal pays an order with it, at a node that asks who calls.",
		terminal(post(theOrder+"/pay", "pay-15", card)).with("Prefer", "wait=60"), 200, first, has("state", "paid", ""))
	s.ask(ctx, "It may not look at the order ...", terminal(get(theOrder)), 403, has("code", "forbidden", ""))
	s.ask(ctx, "... or give the money back.", terminal(post(theOrder+"/refund", "refund-15", `{"reason":"a gift"}`)), 403,
		has("code", "forbidden", "refused before anything was looked at"))

	ticket := s.ask(ctx, "The shop has a key too, which no browser gets to see. For a customer's browser it asks for a ticket:\n"+
		"to follow one order, for a minute. Nothing is stored for it.", s.guarded(newTicket(60), sells), 201)
	browser := s.subscribe(ctx, s.guardedURL, `"start"`, `{"workflow":"order","business_key":"c-1:k-15"}`,
		api.Subprotocol, "pawl.ticket."+ticket.at("ticket"))
	defer browser.cut()
	browser.readUntil("caught_up")
	if s.err == nil && len(browser.seen) != 3 {
		s.fail(fmt.Errorf("the browser saw %d events, and should see 3", len(browser.seen)))
	}
	s.held("the browser saw its order placed and paid")
	s.ask(ctx, "It has no access to other orders.",
		s.guarded(get("/v1/workflows/order/keys/c-1:k-9"), ticket.at("ticket")), 403, has("code", "forbidden", ""))
	short := s.send(ctx, s.guarded(newTicket(1), sells))
	look := s.guarded(get(theOrder), short.at("ticket"))
	s.until(ctx, "the ticket ends", func() bool { return s.send(ctx, look).status == http.StatusUnauthorized })
	s.ask(ctx, "A ticket ends by itself. This one was good for a second.", look, 401, has("code", "unauthorized", ""))
}

// key makes an API key with the command line, and returns its text.
func (s *story) key(ctx context.Context, called string, grants ...string) string {
	args := []string{"keys", "create", called}
	for _, g := range grants {
		args = append(args, "--grant", g)
	}
	return s.pawl(ctx, args...)
}

// newTicket asks for a ticket with which c-1 follows an order, for so many seconds.
func newTicket(seconds int) request {
	return request{method: http.MethodPost, path: "/v1/tickets", body: fmt.Sprintf(
		`{"grants":["read:order#c-1%%3Ak-15","stream:order#c-1%%3Ak-15"],"actor":"c-1","seconds":%d}`, seconds)}
}

// guarded sends a request to the node that asks who calls.
func (s *story) guarded(r request, credential string) request {
	return r.with("Authorization", "Bearer "+credential).to(s.guardedURL)
}

// guard starts a node that asks who calls, on the same tables. It serves the shop's page, whose backend has the key.
func (s *story) guard(ctx context.Context, key string) {
	if s.err != nil {
		return
	}
	config := s.config()
	config.Address = loopbackPort
	config.Auth.Keys = true
	config.Routes = func(node *pawl.Service) map[string]http.Handler {
		h, err := page.New(page.Config{Pawl: node.URL(), Key: key, Log: config.Log})
		s.fail(err)
		return map[string]http.Handler{page.Path: h}
	}
	node, err := pawl.Start(ctx, config)
	if err != nil {
		s.fail(err)
		return
	}
	s.guardedURL = node.URL()
	s.ends = append(s.ends, func() error { return stopNode(ctx, node) })
	s.aside("a second node is at %s and asks who calls; the shop's page is there at %s", s.guardedURL, page.Path)
}
