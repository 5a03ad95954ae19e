package audit_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
)

func TestVerify_IntactChain(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for id, want := range map[uuid.UUID]inspect.Verification{
		uuid.Nil: {Intact: true, Instances: 3, Entries: 12}, second: {Intact: true, Instances: 1, Entries: 4},
	} {
		got, err := b.verify.Verify(t.Context(), tenant, id, nil)
		assert.Truef(t, err == nil && reflect.DeepEqual(got, want), "%s: got %+v, %v, want %+v", id, got, err, want)
	}
	for name, id := range map[string]uuid.UUID{"nobody": uuid.Nil, tenant: uuid.New()} {
		got, err := b.verify.Verify(t.Context(), name, id, nil)
		assert.Truef(t, err == nil && got.Instances == 0 && len(got.Broken) == 0, "%s, %s: got %+v, %v", name, id, got, err)
	}
}

// where is the row of an instance and a version.
func where(id uuid.UUID, version int) string {
	return fmt.Sprintf(" WHERE tenant = 'acme' AND instance = '%s' AND version = %d", id, version)
}

func broken(id uuid.UUID, version int64, reason string) inspect.Break {
	return inspect.Break{Instance: id, Version: version, Reason: reason}
}

const changed = "the row was changed, or the one before it, or the instance before this transition"

func TestAChangeOfAnyColumnIsFoundAtItsRow(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	missing := func(v int) string { return fmt.Sprintf("the row of version %d is missing", v) }
	columns := map[string]struct {
		set  string
		want func(version int) string
		at   func(version int) int // the row that is named; nil: the changed one
	}{
		"tenant":         {"tenant = 'other'", missing, nil},
		"instance":       {"instance = 'ffffffff-0000-8000-8000-000000000001'", missing, nil},
		"version":        {"version = 99", missing, nil},
		"position":       {"position = position - 9", nil, nil},
		"workflow":       {"workflow = 'orders'", nil, nil},
		"transition":     {"transition = 'moved'", nil, nil},
		"from_state":     {"from_state = 's9'", nil, nil},
		"to_state":       {"to_state = 's9'", nil, nil},
		"actor":          {"actor = 'eve'", nil, nil},
		"proof":          {"proof = 'jwt'", nil, nil},
		"reason":         {"reason = 'because.'", nil, nil},
		"payload":        {`payload = '{"n":9, "x": "é"}'`, nil, nil},
		"payload_digest": {"payload = NULL, payload_digest = sha256('x')", nil, nil},
		"data":           {`data = '{"total":99}'`, nil, nil},
		"data_digest":    {"data = NULL, data_digest = sha256('x')", nil, nil},
		"scope":          {"scope = 'x'", nil, nil},
		"key":            {"key = 'x' || key", nil, nil},
		"cause":          {"cause = CASE WHEN cause IS NULL THEN 'operator' END", nil, nil},
		"at":             {"at = at + interval '1 microsecond'", nil, nil},
		"hash":           {"hash = sha256(hash)", nil, nil},
		"rest_digest":    {"rest_digest = sha256('x')", nil, nil},
		"events_digest":  {"events_digest = sha256('x')", nil, nil},
	}
	for name, c := range columns {
		for version := 1; version <= 4; version++ {
			if version == 1 && (name == "from_state" || name == "version" || name == "position") {
				continue // the table's checks refuse it
			}
			want := changed
			switch {
			case version == 1 && c.want == nil:
				want = "the row was changed, or the instance's definition, business key or parent was"
			case name == "position":
				want = fmt.Sprintf("the row's position is %d, but the one before it has %d", 3*version-11, 3*version-5)
			case version == 4 && c.want != nil:
				want = "the instance is at version 4, but its last row is of version 3"
				if name == "version" {
					want = missing(4)
				}
			case c.want != nil:
				want = c.want(version)
			}
			got := b.verifyAfter(t, first, "UPDATE pawl.audit SET "+c.set+where(first, version))
			assert.Equalf(t, []inspect.Break{{Instance: first, Version: int64(version), Reason: want}}, got.Broken,
				"%s of version %d, want %q", name, version, want)
		}
	}
	found, err := b.pool.Query(t.Context(), "SELECT attname::text FROM pg_attribute WHERE attrelid = 'pawl.audit'::regclass AND attnum > 0")
	require.NoError(t, err)
	names, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	for _, name := range names {
		_, tried := columns[name]
		assert.Truef(t, tried, "no change of column %s is tried", name)
	}
}

func TestASpaceInAPayloadIsAChange(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	got := b.verifyAfter(t, first, `UPDATE pawl.audit SET payload = '{"n":2,"x": "\u00e9"}'`+where(first, 2))
	assert.Truef(t, len(got.Broken) == 1 && got.Broken[0].Version == 2, "got %+v", got.Broken)
}

func TestEveryOtherTamperingIsFound(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	zero := uuid.Nil
	log := func(rows, positions, from, to int) inspect.Break {
		return inspect.Break{Instance: zero, Reason: fmt.Sprintf(
			"the log's head is 12, but there are %d rows with %d positions from %d to %d", rows, positions, from, to)}
	}
	last := b.entries[second][3]
	added := entry(second, 5, 13)
	added.Hash = audit.Link(last.Hash, &added)
	addRow := func(hash string) string {
		return fmt.Sprintf(`INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, from_state, to_state, actor, proof,
			reason,
			payload, data, scope, key, cause, at, payload_digest, data_digest, hash, rest_digest, events_digest)
				SELECT tenant, instance, 5, 13, workflow, transition, 's4', 's5', actor, proof, reason,
			'{"n":5, "x": "\u00e9"}', '{"total":50}', scope, 'k-5', NULL, '2026-01-02 03:04:05.567891Z', NULL, NULL, %s, NULL, NULL FROM pawl.audit`,
			hash) + where(second, 4)
	}
	swap := func(column string) string {
		return fmt.Sprintf(`UPDATE pawl.audit a SET %[1]s = b.%[1]s FROM pawl.audit b WHERE a.tenant = 'acme' AND b.tenant = 'acme'
			AND a.instance = '%[2]s' AND b.instance = '%[2]s' AND a.version IN (2, 3) AND b.version = 5 - a.version`, column, second)
	}
	ofSecond := fmt.Sprintf(" WHERE tenant = 'acme' AND id = '%s'", second)
	for _, tt := range []struct {
		name, tamper string
		want         []inspect.Break
	}{
		{"the first row goes", "DELETE FROM pawl.audit" + where(second, 1),
			[]inspect.Break{broken(second, 1, "the row of version 1 is missing"), log(11, 11, 1, 12)}},
		{"a row in the middle goes", "DELETE FROM pawl.audit" + where(second, 3),
			[]inspect.Break{broken(second, 3, "the row of version 3 is missing"), log(11, 11, 1, 12)}},
		{"the last row goes", "DELETE FROM pawl.audit" + where(second, 4),
			[]inspect.Break{broken(second, 4, "the instance is at version 4, but its last row is of version 3"), log(11, 11, 1, 12)}},
		{"all rows go", "DELETE FROM pawl.audit WHERE instance = '" + second.String() + "'",
			[]inspect.Break{broken(second, 1, "the instance is at version 4, but its last row is of version 0"), log(8, 8, 1, 12)}},
		{"the instance goes", "DELETE FROM pawl.instance" + ofSecond,
			[]inspect.Break{broken(second, 4, "the instance of these rows is missing")}},
		{"the instance, its rows and its events go", "DELETE FROM pawl.instance" + ofSecond + "; DELETE FROM pawl.audit WHERE instance = '" +
			second.String() +
			"'; DELETE FROM pawl.outbox WHERE instance = '" + second.String() + "'", []inspect.Break{log(8, 8, 1, 12)}},
		{"the end goes, and the instance is set back", "DELETE FROM pawl.audit" + where(second, 4) +
			"; DELETE FROM pawl.outbox" + where(second, 4) +
			"; UPDATE pawl.instance SET updated_at = updated_at - interval '1 second', state = 's3', data = '{\"total\":30}', version = 3, chain " +
			"= (SELECT hash FROM pawl.audit" + where(second, 3) + ")" + ofSecond,
			[]inspect.Break{log(11, 11, 1, 12)}},
		{"two rows change places", "UPDATE pawl.audit SET version = 99" + where(second, 2) + "; UPDATE pawl.audit SET version = 2" +
			where(second, 3) +
			"; UPDATE pawl.audit SET version = 3" + where(second, 99), []inspect.Break{broken(second, 2, changed)}},
		{"two rows change payloads", swap("payload"), []inspect.Break{broken(second, 2, changed)}},
		{"two rows change hashes", swap("hash"), []inspect.Break{broken(second, 2, changed)}},
		{"two rows change positions", swap("position"),
			[]inspect.Break{broken(second, 3, "the row's position is 5, but the one before it has 8")}},
		{"a row is added", addRow("sha256('x')"), []inspect.Break{broken(second, 5, changed), log(13, 13, 1, 13)}},
		{"a row is added with the right hash", addRow(fmt.Sprintf(`'\x%x'`, added.Hash)),
			[]inspect.Break{broken(second, 5, "the instance is at version 4, but its last row is of version 5"), log(13, 13, 1, 13)}},
		{"an instance is added", "INSERT INTO pawl.instance (tenant, id, workflow, definition, business_key, state, version," +
			" data, attributes, actors, open, chain, created_at, updated_at) SELECT tenant, '" + third.String()[:35] +
			"9', workflow, definition, business_key, state, version," +
			" data, attributes, actors, open, chain, created_at, updated_at FROM pawl.instance" + ofSecond,
			[]inspect.Break{broken(uuid.MustParse(third.String()[:35]+"9"), 1, "the instance is at version 4, but its last row is of version 0")}},
		{"the instance is there twice", "INSERT INTO pawl.instance (tenant, id, bucket, workflow, definition, business_key, state, version," +
			" data, attributes, actors, links, open, chain, created_at, updated_at) SELECT tenant, id, 1, workflow, definition, business_key," +
			" state, version, data, attributes, actors, links, open, chain, created_at, updated_at FROM pawl.instance" + ofSecond,
			[]inspect.Break{broken(second, 2, "the row of version 2 is missing")}},
		{"the instance's hash is changed", "UPDATE pawl.instance SET chain = sha256(chain)" + ofSecond,
			[]inspect.Break{broken(second, 4, "the instance does not hold the hash of its last row")}},
		{"the instance's state is changed", "UPDATE pawl.instance SET state = 's3'" + ofSecond,
			[]inspect.Break{broken(second, 4, "the instance's state is not what its rows say")}},
		{"the instance's data is changed", `UPDATE pawl.instance SET data = '{"total":41}'` + ofSecond,
			[]inspect.Break{broken(second, 4, "the instance's data is not what its rows say")}},
		{"the instance's version is raised", "UPDATE pawl.instance SET version = 5" + ofSecond,
			[]inspect.Break{broken(second, 5, "the instance is at version 5, but its last row is of version 4")}},
		{"the instance's version is lowered", "UPDATE pawl.instance SET version = 2" + ofSecond,
			[]inspect.Break{broken(second, 3, "the instance is at version 2, but its last row is of version 4")}},
		{"a position is past the head", "UPDATE pawl.audit SET position = 13" + where(second, 4) + "; UPDATE pawl.outbox SET position = 13" +
			where(second, 4),
			[]inspect.Break{log(12, 12, 1, 13)}},
		{"a position is given twice", "UPDATE pawl.audit SET position = 10" + where(second, 4),
			[]inspect.Break{broken(second, 4, `the instance of its event "order.move" in the outbox is not its own`), log(12, 11, 1, 12)}},
		{"the head is lowered", "UPDATE pawl.log SET head = 11 WHERE tenant = 'acme'",
			[]inspect.Break{broken(zero, 0, "the log's head is 11, but there are 12 rows with 12 positions from 1 to 12")}},
		{"the head is gone", "DELETE FROM pawl.log", []inspect.Break{broken(zero, 0,
			"the log's head is 0, but there are 12 rows with 12 positions from 1 to 12")}},
		{"two instances are changed", "UPDATE pawl.audit SET actor = 'eve'" + where(first, 3) + "; DELETE FROM pawl.audit" + where(third, 2),
			[]inspect.Break{broken(first, 3, changed), broken(third, 2, "the row of version 2 is missing"), log(11, 11, 1, 12)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := b.verifyAfter(t, zero, tt.tamper); !reflect.DeepEqual(got.Broken, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got.Broken, tt.want)
			}
			onlySecond := slices.DeleteFunc(slices.Clone(tt.want), func(b inspect.Break) bool { return b.Instance != second })
			got := b.verifyAfter(t, second, tt.tamper)
			assert.Truef(t, len(onlySecond) == len(got.Broken) && (len(onlySecond) != 1 || onlySecond[0] == got.Broken[0]),
				"the instance alone: got %+v, want %+v", got.Broken, onlySecond)
		})
	}
}

func TestARedactedRowStillVerifies(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	redact := "UPDATE pawl.audit SET payload_digest = sha256(convert_to(payload::text, 'UTF8')), payload = NULL," +
		" data_digest = sha256(convert_to(data::text, 'UTF8')), data = NULL"
	if got := b.verifyAfter(t, uuid.Nil, redact); len(got.Broken) != 0 || got.Entries != 12 {
		t.Errorf("got %+v", got)
	}
	if got := b.verifyAfter(t, second, redact+where(second, 2)); len(got.Broken) != 0 {
		t.Errorf("one row: got %+v", got)
	}
	got := b.verifyAfter(t, second, redact+where(second, 2)+"; UPDATE pawl.audit SET payload = '{}', payload_digest = NULL"+where(second, 2))
	assert.Truef(t, len(got.Broken) == 1 && got.Broken[0].Version == 2, "another payload in its place: got %+v", got)
}

func TestARowThatLostItsChecksIsBrokenAndNotAPanic(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for _, sql := range []string{
		"UPDATE pawl.audit SET hash = 'x'", "UPDATE pawl.audit SET payload = NULL, payload_digest = 'x'", "UPDATE pawl.audit SET payload = NULL",
	} {
		got := b.verifyAfter(t, second, `ALTER TABLE pawl.audit DROP CONSTRAINT audit_hash_check, DROP CONSTRAINT audit_payload_digest_check,
			DROP CONSTRAINT audit_check1; `+sql+where(second, 2))
		assert.Truef(t, len(got.Broken) == 1 && got.Broken[0].Version == 2, "%s: got %+v", sql, got.Broken)
	}
}

func TestVerifyFailsWithTheDatabase(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.exec(t, "ALTER TABLE pawl.audit RENAME TO elsewhere")
	_, err := b.verify.Verify(t.Context(), tenant, uuid.Nil, nil)
	assert.ErrorContains(t, err, "read audit chains")
}
