package pooler

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// settings are required in every session, whatever the server, the database or the role sets: pgx parses times in ISO format and text
// in UTF-8, and quotes literals as in standard SQL. PgBouncer passes exactly these parameters on.
var settings = []struct{ name, value string }{
	{"datestyle", "ISO"}, {"client_encoding", "UTF8"}, {"standard_conforming_strings", "on"},
}

// Configure adds the settings to the parameters of new connections.
func Configure(c *pgx.ConnConfig) {
	for _, s := range settings {
		c.RuntimeParams[s.name] = s.value
	}
}

// checkSettings rejects a database that is not in UTF-8, and connections without the settings. It takes one round trip.
func checkSettings(ctx context.Context, pool *pgxpool.Pool) error {
	var database, encoding string
	found := make([]string, len(settings))
	columns, into := []string{"current_database()", "current_setting('server_encoding')"}, []any{&database, &encoding}
	for i, s := range settings {
		columns = append(columns, "current_setting('"+s.name+"')")
		into = append(into, &found[i])
	}
	err := pool.QueryRow(ctx, "SELECT "+strings.Join(columns, ", "), pgx.QueryExecModeExec).Scan(into...)
	if err != nil {
		return fmt.Errorf("look at the settings of the database: %w", err)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database %q has the encoding %s, and Pawl needs UTF8: create one with "+
			"CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", database, encoding)
	}
	for i, s := range settings {
		if value, _, _ := strings.Cut(found[i], ","); value != s.value {
			return fmt.Errorf("connections to the database %q have %s = %s, and Pawl needs %s: add %s=%s to the connection string",
				database, s.name, found[i], s.value, s.name, s.value)
		}
	}
	return nil
}
