package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestExitCodes(t *testing.T) {
	url := pgtest.URL(t)
	tests := []struct {
		args []string
		code int
		want string // in what is printed to standard error
	}{
		{[]string{"--only", "["}, 2, "error parsing regexp"},
		{[]string{"--rounds", "many"}, 2, `invalid value "many"`},
		{[]string{"--large=much"}, 2, `invalid boolean value "much" for -large`},
		{[]string{"now"}, 2, `unexpected argument "now"`},
		{[]string{"--help"}, 0, "-large"},
		{[]string{"--only", "no such scenario"}, 1, "selects no scenario"},
		{[]string{"--large", "--only", "no such scenario"}, 1, "selects no scenario"},
	}
	for _, tt := range tests {
		var out, errs bytes.Buffer
		code := execute(t.Context(), append([]string{"--database", url}, tt.args...), &out, &errs)
		assert.Truef(t, code == tt.code && strings.Contains(errs.String(), tt.want) && out.Len() <= 0,
			"%q: exit %d, %q, %q; want exit %d and %q", tt.args, code, &out, &errs, tt.code, tt.want)
	}
}
