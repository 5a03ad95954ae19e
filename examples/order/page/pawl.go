package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/workflow"
)

// place is the transition of an order that the backend asks for itself.
var place = workflow.NameOf[order.Place](order.Workflow(nil), "place")

// pawl asks Pawl over HTTP, with the backend's API key.
type pawl struct{ *client.Client }

// connect makes one. A customer waits: a request is not tried for long.
func connect(address, key string) (pawl, error) {
	c, err := client.New(client.Config{URLs: []string{address}, Token: key, Retry: client.Retry{Attempts: 3}})
	return pawl{c}, err
}

// refusal is what the customer is told: of the backend, or a refusal of Pawl.
type refusal struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.Status, r.Detail) }

func refuse(status int, detail string) *refusal { return &refusal{status, detail} }

// place places an order as its customer. Repeated with the key, it does nothing a second time.
func (p pawl) place(ctx context.Context, key string, wanted order.Place) error {
	cmd := client.CommandOf(place, client.NewInstance, wanted)
	cmd.Key, cmd.Actor = key, wanted.Customer
	_, err := p.Submit(ctx, cmd)
	return refused(err)
}

// ticket makes a ticket for one order, with which its customer reads and follows it, pays and cancels it.
func (p pawl) ticket(ctx context.Context, number, customer string, lasts time.Duration) (string, error) {
	to := func(r auth.Right, transition string) string {
		return auth.Grant{Right: r, Target: auth.Target{Workflow: "order", BusinessKey: number, Transition: transition}}.String()
	}
	seconds := int64(lasts / time.Second)
	t, err := p.Ticket(ctx, client.TicketRequest{
		Grants: []string{to(auth.Read, ""), to(auth.Stream, ""), to(auth.Submit, "pay"), to(auth.Submit, "cancel")},
		Actor:  &customer, Seconds: &seconds,
	})
	return t.Ticket, refused(err)
}

// told are the answers whose words are for the customer. Others are about the backend.
var told = []int{http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusServiceUnavailable}

// refused is a *refusal where Pawl has refused something that the customer may know of.
func refused(err error) error {
	if e, ok := errors.AsType[*workflow.Error](err); ok && e.Code != workflow.TimedOut && slices.Contains(told, e.Code.Info().Status) {
		return refuse(e.Code.Info().Status, e.Detail())
	}
	return err
}
