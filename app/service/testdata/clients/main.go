// Command client places an order and pays for it with a client that was generated from the service's own document.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"client/pawl"
)

func main() {
	base, customer := os.Args[1], os.Args[2]
	ctx := context.Background()
	c, err := pawl.NewClientWithResponses(base)
	if err != nil {
		log.Fatal(err)
	}
	wait := "wait=60"
	order := pawl.OrderPlace{Customer: customer, Cart: "7", Total: 129900, Currency: "EUR"}
	placed, err := c.OrderPlaceWithResponse(ctx, &pawl.OrderPlaceParams{IdempotencyKey: "place-" + customer, Prefer: &wait}, order)
	if err != nil || placed.JSON201 == nil {
		log.Fatal(err, placed)
	}
	number, method := customer+":7", pawl.OrderPay{Method: "card"}
	paid, err := c.OrderPayByKeyWithResponse(ctx, number, &pawl.OrderPayByKeyParams{IdempotencyKey: "pay-" + customer, Prefer: &wait}, method)
	if err != nil || paid.JSON200 == nil {
		log.Fatal(err, paid)
	}
	again, err := c.OrderPayByKeyWithResponse(ctx, number, &pawl.OrderPayByKeyParams{IdempotencyKey: "again-" + customer}, method)
	if err != nil || again.ApplicationproblemJSON409 == nil {
		log.Fatal(err, again)
	}
	problem, err := again.ApplicationproblemJSON409.ValueByDiscriminator()
	if err != nil {
		log.Fatal(err)
	}
	refused, ok := problem.(pawl.ProblemIllegalTransition)
	if !ok {
		log.Fatalf("paid twice: %T", problem)
	}
	shown, err := c.GetWorkflowsWorkflowKeysBusinessKeyWithResponse(ctx, "order", number, nil)
	if err != nil || shown.JSON200 == nil {
		log.Fatal(err, shown)
	}
	instance, err := shown.JSON200.AsInstanceView()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(instance.Workflow, instance.State, refused.Status)
}
