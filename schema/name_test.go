package schema

import (
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"pawl": true, "_": true, "a1_b2": true, strings.Repeat("x", 63): true,
		"": false, "1a": false, "Pawl": false, "a b": false, `a"b`: false, "a.b": false, "a;b": false, "é": false, "a-b": false,
		strings.Repeat("x", 64): false, "pawl\n": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestInvalidNameIsRejectedEarly(t *testing.T) {
	t.Parallel()
	if _, err := Migrate(t.Context(), nil, `x"; DROP TABLE`); err == nil {
		t.Error("Migrate took it")
	}
	if err := Check(t.Context(), nil, ""); err == nil {
		t.Error("Check took it")
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"SELECT FROM {pawl}.audit, {pawl}.log":   `SELECT FROM "other".audit, "other".log`,
		"nextval('{pawl}.provisional')":          `nextval('"other".provisional')`,
		"'pawl.paused', pawl.audit, '{\"a\":1}'": "'pawl.paused', pawl.audit, '{\"a\":1}'",
	} {
		if got := In("other", sql); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := For(Default)(sql); got != strings.ReplaceAll(sql, "{pawl}", Default) {
			t.Errorf("by its own name: got %s", got)
		}
	}
}

// Released migrations are not rewritten.
func TestMigrationInReplacesQualifierOnly(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"SELECT FROM pawl.audit, pawl.log":                `SELECT FROM "other".audit, "other".log`,
		"nextval('pawl.provisional')":                     `nextval('"other".provisional')`,
		"SELECT mypawl.x, pawlx.y, 'pawl migrate', pawl":  "SELECT mypawl.x, pawlx.y, 'pawl migrate', pawl",
		"(pawl.expect(1, 1))\npawl.log":                   "(\"other\".expect(1, 1))\n\"other\".log",
		"SELECT $1 FROM pawl.log WHERE tenant = '$1 \\1'": `SELECT $1 FROM "other".log WHERE tenant = '$1 \1'`,
	} {
		if got := migrationIn("other", sql); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := migrationIn(Default, sql); got != strings.ReplaceAll(want, `"other"`, Default) {
			t.Errorf("by its own name: got %s", got)
		}
	}
}
