package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{"pawl": true, "_": true, "a1_b2": true, strings.Repeat("x", 63): true,
		"": false, "1a": false, "Pawl": false, "a b": false, `a"b`: false, "a.b": false, "a;b": false, "é": false, "a-b": false,
		strings.Repeat("x", 64): false, "pawl\n": false} {
		err := CheckName(name)
		assert.Equalf(t, ok, (err == nil), "%q: %v", name, err)
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"SELECT FROM {pawl}.audit, {pawl}.log":   `SELECT FROM "other".audit, "other".log`,
		"nextval('{pawl}.provisional')":          `nextval('"other".provisional')`,
		"'pawl.paused', pawl.audit, '{\"a\":1}'": "'pawl.paused', pawl.audit, '{\"a\":1}'",
	} {
		assert.Equal(t, want, In("other", sql))
		assert.Equal(t, strings.ReplaceAll(sql, "{pawl}", Default), For(Default)(sql), "by its own name")
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
		assert.Equal(t, want, migrationIn("other", sql))
		assert.Equal(t, strings.ReplaceAll(want, `"other"`, Default), migrationIn(Default, sql), "by its own name")
	}
}
