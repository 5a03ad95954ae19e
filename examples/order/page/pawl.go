package page

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/examples/order"
)

// client asks Pawl over HTTP, with the backend's API key.
type client struct{ url, key string }

// refusal is what the customer is told: of the backend, or a problem document of Pawl (RFC 9457).
type refusal struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.Status, r.Detail) }

func refuse(status int, detail string) *refusal { return &refusal{status, detail} }

// place places an order as its customer. Repeated with the key, it does nothing a second time.
func (c client) place(ctx context.Context, key string, p order.Place) error {
	return c.post(ctx, "/v1/workflows/order/place", http.Header{"Idempotency-Key": {key}, "Pawl-Actor": {p.Customer}}, p, nil)
}

// ticketFor asks for a ticket.
type ticketFor struct {
	Grants  []string `json:"grants"`
	Actor   string   `json:"actor"`
	Roles   []string `json:"roles"`
	Seconds int64    `json:"seconds"`
}

// ticket makes a ticket for one order, with which its customer reads and follows it, pays and cancels it.
func (c client) ticket(ctx context.Context, number, customer string, lasts time.Duration) (string, error) {
	to := func(r auth.Right, transition string) string {
		return auth.Grant{Right: r, Target: auth.Target{Workflow: "order", BusinessKey: number, Transition: transition}}.String()
	}
	ask := ticketFor{
		Grants: []string{to(auth.Read, ""), to(auth.Stream, ""), to(auth.Submit, "pay"), to(auth.Submit, "cancel")},
		Actor:  customer, Roles: []string{}, Seconds: int64(lasts / time.Second),
	}
	var answer struct {
		Ticket string `json:"ticket"`
	}
	err := c.post(ctx, "/v1/tickets", nil, ask, &answer)
	return answer.Ticket, err
}

// told are the answers whose words are for the customer. Others are about the backend.
var told = []int{http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusServiceUnavailable}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// post sends body, and reads the answer into result, if that is not nil. Error: a *refusal for what the customer may
// know.
func (c client) post(ctx context.Context, path string, header http.Header, body, result any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= 300:
		return refused(answer.StatusCode, text)
	case result == nil:
		return nil
	}
	return json.Unmarshal(text, result)
}

// refused is what an answer says that is none of those that were wanted.
func refused(status int, text []byte) error {
	problem := refuse(status, "")
	if err := json.Unmarshal(text, problem); err != nil || problem.Detail == "" || !slices.Contains(told, status) {
		return fmt.Errorf("pawl answers %d: %.300s", status, text)
	}
	return problem
}
