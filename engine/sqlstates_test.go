package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/kernel/sqlstate"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// obstacle raises an error in Pawl's own statements, as often as is wanted. A sequence counts, because it survives a rollback.
const obstacle = `
	CREATE SCHEMA hindrance;
	CREATE TABLE hindrance.obstacle (state text, con text, tab text, times int);
	CREATE TABLE hindrance.flag (raised int);
	CREATE SEQUENCE hindrance.raised;
	GRANT USAGE ON SCHEMA hindrance TO PUBLIC;
	GRANT ALL ON ALL TABLES IN SCHEMA hindrance TO PUBLIC;
	GRANT ALL ON ALL SEQUENCES IN SCHEMA hindrance TO PUBLIC;
	CREATE FUNCTION hindrance.raise_it() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE o hindrance.obstacle;
	BEGIN
		SELECT * INTO o FROM hindrance.obstacle;
		IF FOUND AND nextval('hindrance.raised') <= o.times THEN
			RAISE EXCEPTION 'so it is' USING ERRCODE = o.state, CONSTRAINT = o.con, TABLE = o.tab, SCHEMA = 'pawl';
		END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER obstacle BEFORE INSERT ON pawl.command FOR EACH ROW WHEN (NEW.key LIKE 'apply-%')
		EXECUTE FUNCTION hindrance.raise_it()`

// obstruct puts the row's error in the way so often.
func obstruct(t *testing.T, pool *pgxpool.Pool, row *sqlstate.Row, times int) {
	t.Helper()
	e := row.Example("pawl")
	exec(t, pool, `TRUNCATE hindrance.obstacle; ALTER SEQUENCE hindrance.raised RESTART`)
	exec(t, pool, `INSERT INTO hindrance.obstacle VALUES ($1, $2, $3, $4)`, e.Code, e.ConstraintName, e.TableName, times)
}

// Each row of docs/sqlstates.md has the effect that it says on callers in Go and over HTTP, and the same key helps.
func TestSQLStatesFromGo(t *testing.T) {
	t.Parallel()
	for i := range sqlstate.Rows {
		row := &sqlstate.Rows[i]
		if strings.HasPrefix(row.State, "P4") {
			continue // of the functions in SQL alone
		}
		name := strings.Join(append([]string{row.State}, row.On...), " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			exec(t, pool, obstacle)
			e := newEngine(t, pool, withHook(runs), func(c *engine.Config) {
				c.Pipeline.LockWait, c.Pipeline.Outage = 300*time.Millisecond, 300*time.Millisecond
			})
			submit(t, e, applied("own", 100_000))
			again := func(c transitions.Command) { // the obstacle is gone
				t.Helper()
				exec(t, pool, `TRUNCATE hindrance.obstacle`)
				for range 2 {
					submit(t, e, c)
				}
				var effects int
				err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pawl.audit WHERE key = $1`, c.Key).Scan(&effects)
				assert.Truef(t, err == nil && effects == 1, "the key %s has %d effects, %v", c.Key, effects, err)
			}
			repeats := row.Class != sqlstate.Defect && row.Class != sqlstate.NoRoom
			obstruct(t, pool, row, 1)
			once := applied(name+" once", 1)
			switch _, err := e.Submit(t.Context(), once); {
			case repeats && err != nil:
				t.Errorf("once: %v, though the engine repeats it", err)
			case !repeats:
				wantCode(t, err, row.Class.Code())
			}
			again(once)

			obstruct(t, pool, row, 1_000_000)
			always := applied(name+" always", 1)
			_, err := e.Submit(t.Context(), always)
			wantCode(t, err, row.Class.Code())
			assert.Truef(t, workflow.CodeOf(err).Info().Retry, "the code %s says that the same key does not help", workflow.CodeOf(err))
			again(always)

			obstruct(t, pool, row, 1_000_000)
			within := applied(name+" within", 1)
			tx := begin(t, pool)
			wantCode(t, errOf(e.SubmitTx(t.Context(), tx, within)), row.Class.Code())
			assert.NoError(t, tx.Rollback(t.Context()))
			exec(t, pool, `TRUNCATE hindrance.obstacle`)
			tx = begin(t, pool)
			submitTx(t, e, tx, within)
			commitTx(t, tx)
			again(within)

			own := on("hook", "own", name, 1, fmt.Sprintf(`DO $$ BEGIN IF EXISTS (SELECT FROM hindrance.flag) THEN
				RAISE EXCEPTION 'so it is' USING ERRCODE = '%s'; END IF; END $$`, row.Example("").Code))
			exec(t, pool, `INSERT INTO hindrance.flag VALUES (1)`)
			wantCode(t, errOf(e.Submit(t.Context(), own)), row.OwnCode())
			exec(t, pool, `TRUNCATE hindrance.flag`)
			again(own)
		})
	}
}
