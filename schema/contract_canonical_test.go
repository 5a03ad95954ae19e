package schema_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
)

func TestSQLCanonicalFormMatchesEngine(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	documents := []string{`{}`, `{"b":1,"a":[true,false,null,{"d":"","c":{}}],"":[]}`,
		`{"a":0,"b":-0,"c":1.50,"d":100,"e":-123.456,"f":1e3,"g":1E-3,"h":-1.5e-7,"i":0.000001,"j":0.0000001}`,
		`{"a":123456789012345,"b":0.123456789012345,"c":9007199254740992,"d":-9007199254740991,"e":1234567890123450000000}`,
		`{"a":1e20,"b":1e21,"c":123e20,"d":1.5e300,"e":-1e-300,"f":999999999999999e6,"g":100000000000000000000}`,
		`{"a":"\u0001\b\f\n\r\t\u001f\u007f\"\\\/é€😀\u2028"}`,
		`{"😀":1,"豈":2,"a":3,"\uffff":4,"\ue000":5,"퟿":6,"é":7,"𐀀":8,"😀😀":9,"😀豈":10,"豈😀":11,"":12,"aa":13,"\n":14}`}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		document, err := json.Marshal(object(random, 3))
		require.NoError(t, err)
		documents = append(documents, string(document))
	}
	for _, document := range documents {
		want, err := decide.Canonical([]byte(document))
		require.NoError(t, err, document)
		assert.Equalf(t, string(want), ask[string](t, pool, "SELECT pawl.canonical($1::jsonb)", document), "\nwant %s", want)
	}
}

// object returns a random JSON object.
func object(random *rand.Rand, depth int) map[string]any {
	o := map[string]any{}
	for range random.IntN(5) {
		o[text(random)] = value(random, depth)
	}
	return o
}

func value(random *rand.Rand, depth int) any {
	switch n := random.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return random.IntN(2) == 0
	case n == 2:
		return text(random)
	case n == 3 && depth > 0:
		return object(random, depth-1)
	case n == 4 && depth > 0:
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = value(random, depth-1)
		}
		return list
	case n == 5:
		return random.Int64N(2<<53) - 1<<53
	default: // up to 15 digits anywhere
		return json.Number(fmt.Sprintf("%de%d", random.Int64N(1e15)-5e14, random.IntN(60)-40))
	}
}

func text(random *rand.Rand) string {
	letters := []rune("ab\"\\\n\u0001\u007fé€\ud7ff\ue000\ufffd\uffff\U00010000😀\U0010ffff")
	s := make([]rune, random.IntN(4))
	for i := range s {
		s[i] = letters[random.IntN(len(letters))]
	}
	return string(s)
}

// Numbers that a double may not preserve would have two forms.
func TestSQLRejectsImpreciseNumbers(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, number := range []string{"9007199254740993", "0.1234567890123456", "12345678901234.56", "1152921504606846976", "1e400", "1e-400",
		"1e309"} {
		refused(t, pool, "22003", "SELECT pawl.canonical($1::jsonb)", `{"n":[`+number+`]}`)
	}
}

func TestSQLFingerprintMatchesEngine(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w, err := orders(nil).Build()
	require.NoError(t, err)
	id := uuid.MustParse("01936b0e-0000-7000-8000-000000000001")
	payload := []byte(`{"cart": "k\u002d1", "customer": "Zoë \"Z\"", "total": 10.0}`)
	for _, tt := range []struct {
		command transitions.Command
		args    string
		values  []any
	}{
		{transitions.Command{Transition: "place", Payload: payload}, "'order', 'place', $1::jsonb", []any{string(payload)}},
		{transitions.Command{Transition: "place", Payload: payload, Actor: `ann "é`}, `'order', 'place', $1::jsonb, actor => 'ann "é'`,
			[]any{string(payload)}},
		{transitions.Command{Transition: "ship", Instance: id}, "'order', 'ship', instance => $1", []any{id}},
		{transitions.Command{Transition: "ship", BusinessKey: "c:k", Payload: []byte(`{"parcel":"p"}`),
			Options: transitions.Options{IfVersion: 3}},
			`'order', 'ship', '{"parcel":"p"}', pawl.instance_id('order', 'c:k'), if_version => 3`, nil},
		{transitions.Command{Transition: "ship", Instance: id, Reason: "two\r\n\tlines\u2028\x7f, </\"é\\\x01😀"},
			"'order', 'ship', instance => $1, reason => $2", []any{id, "two\r\n\tlines\u2028\x7f, </\"é\\\x01😀"}},
		{transitions.Command{Transition: "ship", Instance: id}, "'order', 'ship', instance => $1, reason => ''", []any{id}},
		{transitions.Command{Transition: "ship", Instance: id}, "'order', 'ship', instance => $1, reason => NULL", []any{id}},
	} {
		tt.command.Workflow, tt.command.Key = "order", "k"
		p, err := decide.Prepare(tt.command, w, uuid.New)
		require.NoError(t, err)
		got := ask[[]byte](t, pool, "SELECT pawl.fingerprint("+tt.args+")", tt.values...)
		assert.Equalf(t, string(p.Fingerprint[:]), string(got), "%s: got %x, want %x", tt.args, got, p.Fingerprint)
	}
}

func TestSQLInstanceIDMatchesEngine(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for n, key := range []string{"c-1:k-9", "é", "1:", ""} {
		workflowName, tenant := "order"+strconv.Itoa(n), "ténant"
		want := transitions.InstanceID(tenant, workflowName, key)
		assert.Equalf(t, want, ask[uuid.UUID](t, pool, "SELECT pawl.instance_id($1, $2, $3)", workflowName, key, tenant), "%q", key)
	}
	assert.Equal(t, transitions.InstanceID(transitions.DefaultTenant,
		"order", "c-1:k-9"), ask[uuid.UUID](t, pool, "SELECT pawl.instance_id('order', 'c-1:k-9')"))
}
