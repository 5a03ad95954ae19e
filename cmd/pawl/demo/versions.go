package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/order/page"
	"github.com/pawlhq/pawl/workflow"
)

// access is the chapter about credentials: a machine with a key, and a browser with a ticket.
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

// guarded sends a request to the node with authentication.
func (s *story) guarded(r request, credential string) request {
	return r.with("Authorization", "Bearer "+credential).to(s.guardedURL)
}

// guard starts a node with authentication on the same tables. It serves the shop's page, whose backend has the key.
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

// newVersion is the chapter about a case that ends by another version of its workflow than it began with.
func (s *story) newVersion(ctx context.Context) {
	s.title("The law changes while a case is open")
	const (
		theFine    = "/v1/workflows/fine/keys/V2033"
		migrations = "/v1/ops/migrations"
	)
	s.narrate("A roll-out is under way. This node has the new build, with versions 1 and 2 of fines;\n" +
		"another one has last week's, which knows version 1. So new cases still begin with that.")
	s.received("%s", s.pawl(ctx, "ops", "begin", "fine", "1", "--node", s.url))
	old, stop := s.lastWeeks(ctx)
	violation := post(createFine, "V2033-1",
		`{"case":"V2033","on":"2025-03-01","amount_cents":4000,"article":157,"vehicle_class":"A","officer":561}`)
	recorded := s.ask(ctx, "A violation is recorded there.", violation.to(old), 201, first, has("state", "issued", ""))
	s.send(ctx, post(theFine+"/send_fine", "V2033-2", `{"on":"2025-03-20","expense_cents":1500}`).to(old))
	s.send(ctx, post(theFine+"/insert_fine_notification", "V2033-3", `{"on":"2025-04-01","notification_type":"P"}`).to(old))
	s.ask(ctx, "The notice is posted and served, and 60 days later the fine is unpaid: the sum is raised.",
		post(theFine+"/add_penalty", "V2033-4", `{"on":"2025-06-10","amount_cents":8000}`).to(old), 200, first, has("state", "penalised", ""))
	s.ask(ctx, "Such a fine may be paid in parts now. Version 1 does not know that, on whichever node.",
		post(theFine+"/grant_instalments", "V2033-5", `{"on":"2025-06-20"}`), 404, has("code", "transition_not_found", ""))
	migrate := request{method: http.MethodPost, path: migrations, body: `{"workflow":"fine","from":1,"to":2,"reason":"art. 202-bis"}`}
	dry := migrate
	dry.path += "?dry_run=true"
	s.ask(ctx, "Version 2 has a plan to migrate open cases. How would that end for each? A dry run reads\n"+
		"each and writes nothing. It names the node without version 2: as long as that serves, none is migrated.", dry, 200,
		header("Pawl-Dry-Run", "true", ""), has("nodes_without.#", 1, ""), has("states.0.state", "penalised", ""),
		has("states.0.migrated", 1, "the only open case would stay in its state"))

	s.narrate("That node ends, the roll-out with it, and new cases begin with version 2.")
	stop()
	s.received("%s", s.pawl(ctx, "ops", "begin", "fine", "newest", "--node", s.url))
	begun := s.ask(ctx, "Open cases are migrated in the background, each by a transition of its own.", migrate, 202, has("expected", 1, ""))
	look := get(migrations + "/" + begun.at("id"))
	s.until(ctx, "the migration ends", func() bool { return s.send(ctx, look).at("ended_at") != "" })
	s.ask(ctx, "How did it go?", look, 200, has("migrated", 1, ""), has("rejected", 0, "one case was migrated, none refused"))

	s.ask(ctx, "Now the prefect grants payment in parts ...", post(theFine+"/grant_instalments", "V2033-6", `{"on":"2025-06-20"}`), 200,
		first, has("state", "instalments", ""))
	s.send(ctx, post(theFine+"/payment", "V2033-7", `{"on":"2025-07-01","amount_cents":4000}`))
	s.ask(ctx, "... and with the last of them the case ends.", post(theFine+"/payment", "V2033-8", `{"on":"2025-08-01","amount_cents":5500}`),
		200, first, has("state", "paid", ""))
	s.ask(ctx, "Its history tells when it went from one version to the other.", get(theFine+"/history?after=4&limit=1"), 200,
		has("entries.0.transition", "pawl.migrated", ""), has("entries.0.payload.from", 1, ""),
		has("entries.0.payload.to", 2, "begun under version 1, ended under version 2"))
	s.ask(ctx, "And who lost the very first answer, and asks again?", violation, 201, replayOf(recorded))
}

// lastWeeks starts a node that does not know version 2 of fines. stop ends it; so does the end of the story.
func (s *story) lastWeeks(ctx context.Context) (url string, stop func()) {
	if s.err != nil {
		return "", func() {}
	}
	config := s.config()
	config.Address = loopbackPort
	config.Workflows = slices.DeleteFunc(config.Workflows, func(w workflow.Source) bool { return w == fines.Version2 })
	config.Log = slog.New(slog.DiscardHandler) // it says that a version is not given, as it is meant
	node, err := pawl.Start(ctx, config)
	if err != nil {
		s.fail(err)
		return "", func() {}
	}
	s.ends = append(s.ends, func() error { return stopNode(ctx, node) })
	s.aside("it is at %s", node.URL())
	return node.URL(), func() { s.fail(stopNode(ctx, node)) }
}
