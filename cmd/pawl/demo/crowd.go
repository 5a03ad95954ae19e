package demo

import (
	"bytes"
	"context"
	"fmt"
	"sync"
)

// crowd is how many clients send the same command at the same moment.
const crowd = 50

// crowd is the chapter about who wins when all come at once.
func (s *story) crowd(ctx context.Context) error {
	s.title("Fifty at once")
	const theFine = "/v1/workflows/fine/keys/V2032"
	if err := s.play(ctx, []exchange{{
		tell: "Another violation.",
		request: post(createFine, "V2032-1",
			`{"case":"V2032","on":"2025-03-02","amount_cents":4000,"article":7,"vehicle_class":"A","officer":562}`), status: 201,
		checks: []check{first},
	}}); err != nil {
		return err
	}
	s.narrate(fmt.Sprintf("The same payment arrives %d times in the same moment.", crowd))
	payment := post(theFine+"/payment", "V2032-2", `{"on":"2025-03-03","amount_cents":1000}`)
	s.showRequest(payment)
	if err := s.rush(ctx, payment); err != nil {
		return s.failed(err)
	}
	return s.play(ctx, []exchange{{
		tell:    "The fine has moved by one version, and one payment is on its account.",
		request: get(theFine), status: 200,
		checks: []check{has("version", 2, "one effect")},
	}})
}

// rush sends a request many times at once. One must be done and the others must
// replay it.
func (s *story) rush(ctx context.Context, r request) error {
	answers, errs := make([]answer, crowd), make([]error, crowd)
	gate := make(chan struct{})
	var clients sync.WaitGroup
	for i := range crowd {
		clients.Go(func() {
			<-gate
			answers[i], errs[i] = s.send(ctx, r)
		})
	}
	close(gate)
	clients.Wait()
	done := 0
	for i, a := range answers {
		if errs[i] != nil {
			return errs[i]
		}
		if a.status != 200 || !bytes.Equal(a.body, answers[0].body) {
			return fmt.Errorf("one answer is %d %s, another %d %s", answers[0].status, answers[0].body, a.status, a.body)
		}
		if a.header.Get("Idempotent-Replayed") == "" {
			done++
		}
	}
	s.received("%d times 200 %s", crowd, answers[0].body)
	if done != 1 {
		return fmt.Errorf("%d of %d were done, and one should be", done, crowd)
	}
	s.held("one was done, %d are replays, and all say the same", crowd-1)
	return nil
}
