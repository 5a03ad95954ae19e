package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/workflow"
)

// Typed names of the transitions of package order.
var (
	Place = workflow.NameOf[order.Place](order.Workflow(nil), "place")
	Pay   = workflow.NameOf[order.Pay](order.Workflow(nil), "pay")
)

// An order is placed and paid with typed payloads. The first response is lost.
func Example() {
	server := httptest.NewServer(shop())
	defer server.Close()
	c, err := client.New(client.Config{URLs: []string{server.URL}})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	ctx := context.Background()
	placed, err := client.Submit(ctx, c, Place, client.NewInstance, order.Place{Customer: "c-1", Cart: "k-9", Total: 4900, Currency: "EUR"})
	if err != nil {
		panic(err)
	}
	fmt.Println("placed, version", placed.Version, "replayed", placed.Replayed)
	_, err = client.Submit(ctx, c, Pay, client.ID(placed.Instance), order.Pay{Method: "shells"})
	fmt.Println(err)
	// Output:
	// placed, version 1 replayed true
	// invalid_payload: the payload is not valid; /method: must be one of card, transfer, invoice
}

// shop responds like a node. Other tests of this package use real nodes.
func shop() http.Handler {
	mux, placed := http.NewServeMux(), false
	mux.HandleFunc("POST /v1/workflows/order/place", func(w http.ResponseWriter, r *http.Request) {
		if !placed {
			placed = true
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Idempotent-Replayed", "true")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"instance":"0197f6a0-0000-7000-8000-000000000001","workflow":"order","transition":"place","state":"placed","version":1,`+
			`"at":"2030-01-31T12:00:00Z","position":1}`)
	})
	mux.HandleFunc("POST /v1/instances/{id}/pay", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"code":"invalid_payload","status":400,"detail":"the payload is not valid",`+
			`"errors":[{"pointer":"/method","message":"must be one of card, transfer, invoice"}]}`)
	})
	return mux
}
