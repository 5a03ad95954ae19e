package demo

import (
	"context"

	"github.com/pawlhq/pawl/examples/order/provider"
)

// death is the chapter about a worker that is gone, and nobody knows how far it
// was.
func (s *story) death(ctx context.Context) error {
	s.title("A worker that dies")
	charge := newHold()
	defer charge.release()
	s.bank.Misbehave(func(r provider.Request) provider.Behaviour {
		if r.Op == provider.OpCharge && r.N == 1 {
			charge.wait()
		}
		return provider.Behaviour{}
	})
	defer s.bank.Misbehave(nil)
	s.narrate("A second node on the same database: this program again, as a process of its own.\n" +
		"What it works on, it holds for three seconds without a sign of life; the default is 30.")
	second, err := s.startNode(ctx, "3s")
	if err != nil {
		return s.failed(err)
	}
	defer second.kill()
	if err := s.play(ctx, []exchange{
		another("k-12"),
		{
			tell:    "It is asked to take a payment.",
			request: post("/v1/workflows/order/keys/c-1:k-12/pay", "pay-1", card).to(second.url), status: 202, as: "dying",
			checks: []check{first, has("status", "processing", "")},
		},
	}); err != nil {
		return err
	}
	if err := charge.await(ctx); err != nil {
		return s.failed(err)
	}
	s.narrate("The charge is at the provider, and the node is killed (SIGKILL): it cannot say a word.")
	second.kill()
	s.held("process %d is gone", second.pid)
	charge.release()
	s.narrate("Whoever watches the payment sees a worker of the first node take it over when they\n" +
		"are over, and the log warns of it. The worker asks whether the charge has happened.")
	scope, err := member(s.answers["dying"].body, "scope")
	if err != nil {
		return s.failed(err)
	}
	end, err := s.watch(ctx, scope, "pay-1")
	if err != nil {
		return s.failed(err)
	}
	if err := s.check(end, []check{has("status", "succeeded", ""), has("attempt", 2, ""), has("failures", 1, "done by the second attempt")}); err != nil {
		return s.failed(err)
	}
	return s.play(ctx, []exchange{{
		tell:    "Was the customer charged twice?",
		request: s.ledger(), status: 200,
		checks: []check{books("c-1:k-12", 1, 0, "c-1:k-12 was charged once")},
	}})
}
