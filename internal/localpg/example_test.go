package localpg_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/localpg"
)

// A throw-away server, from nothing to a query and back to nothing.
func ExampleStart() {
	ctx := context.Background()
	server, err := localpg.Start(ctx, localpg.Options{Ephemeral: true})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			log.Print(err)
		}
	}()
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		log.Print(err)
		return
	}
	var name, address string
	if err := conn.QueryRow(ctx, `SELECT current_database(), host(inet_server_addr())`).Scan(&name, &address); err != nil {
		log.Print(err)
	}
	fmt.Println(name, "on", address)
	if err := conn.Close(ctx); err != nil {
		log.Print(err)
	}
	// Output: pawl on 127.0.0.1
}
