package service

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// settings are sets of settings of real servers.
var settings = [][]string{
	{"datestyle = 'German, DMY'", "client_encoding = LATIN1", "standard_conforming_strings = off", "backslash_quote = on",
		"escape_string_warning = off", "intervalstyle = iso_8601", "bytea_output = escape", "extra_float_digits = 0",
		"timezone = 'Asia/Kathmandu'", "lc_messages = 'C'", "search_path = ''"},
	{"datestyle = 'SQL, MDY'", "default_transaction_isolation = serializable", "default_transaction_deferrable = on",
		"statement_timeout = '30s'", "lock_timeout = '10s'", "idle_in_transaction_session_timeout = '30s'", "row_security = off",
		"transform_null_equals = on", "quote_all_identifiers = on"},
	{"datestyle = 'Postgres, YMD'", "jit = on", "synchronous_commit = off", "plan_cache_mode = force_generic_plan", "array_nulls = off",
		"check_function_bodies = off", "default_table_access_method = heap", "work_mem = '64kB'", "xmloption = document",
		"enable_indexscan = off"},
}

// Migration, start and commands do not depend on the settings of the database.
func TestServerSettings(t *testing.T) {
	t.Parallel()
	for i, set := range settings {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			url := pgtest.EmptyURL(t)
			for _, setting := range set {
				alter(t, pgtest.Direct(t, url), func(database string) string { return "ALTER DATABASE " + database + " SET " + setting })
			}
			s := service(t, func(c *Config) { c.Database = url })
			place(t, s)
			for _, path := range []string{"/v1/workflows/order/keys/c-1:k-9", "/v1/workflows/order/keys/c-1:k-9/history", "/v1/events?limit=1"} {
				status, body := asks(t, s, path, "")
				assert.Equal(t, http.StatusOK, status, path)
				assert.Contains(t, body, "placed", path)
			}
		})
	}
}

func TestDatabaseEncoding(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Direct(t, pgtest.EmptyURL(t))
			var name string
			alter(t, url, func(database string) string {
				name = strings.Trim(database, `"`) + "_" + strings.ToLower(encoding)
				return "CREATE DATABASE " + name + " ENCODING '" + encoding + "' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
			})
			defer alter(t, url, func(string) string { return "DROP DATABASE " + name + " WITH (FORCE)" })
			config, err := pgx.ParseConfig(url)
			require.NoError(t, err)
			other := strings.Replace(url, config.Database, name, 1)
			_, err = Start(t.Context(), Config{Workflows: theOrder(), Database: other,
				Address: "127.0.0.1:0", Log: quiet})
			assert.ErrorContains(t, err, `the database "`+name+`" has the encoding `+encoding+", and Pawl needs UTF8")
		})
	}
}

// alter runs a statement about the database that a connection string names.
func alter(t *testing.T, url string, statement func(database string) string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	var database string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT current_database()").Scan(&database))
	_, err = conn.Exec(t.Context(), statement(pgx.Identifier{database}.Sanitize()))
	require.NoError(t, err)
}
