package client_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/client"
)

func TestContentKey(t *testing.T) {
	t.Parallel()
	type invoice struct {
		Number string `json:"number"`
		Cents  int    `json:"cents"`
	}
	base := invoice{"R-7", 1200}
	want, err := client.ContentKey(base)
	require.Truef(t, err == nil && len(want) == 51, "%q, %v", want, err)
	for _, tt := range []struct {
		name    string
		content any
		same    bool
	}{
		{"equal value", invoice{"R-7", 1200}, true},
		{"map with the same members", map[string]any{"number": "R-7", "cents": 1200}, true},
		{"other number", invoice{"R-8", 1200}, false},
		{"other amount", invoice{"R-7", 1201}, false},
		{"additional member", map[string]any{"number": "R-7", "cents": 1200, "note": ""}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := client.ContentKey(tt.content); err != nil || (got == want) != tt.same {
				t.Errorf("%q, %v, want equal to %q: %v", got, err, want, tt.same)
			}
		})
	}
	for _, bad := range []any{func() {}, "\xff"} {
		if key, err := client.ContentKey(bad); err == nil || key != "" {
			t.Errorf("ContentKey(%T) = %q, %v", bad, key, err)
		}
	}
}

func TestFormKey(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, pair := range [][2]string{{"ann", "f-1"}, {"ann", "f-2"}, {"bob", "f-1"}, {"ab", "c"}, {"a", "bc"}} {
		key, err := client.FormKey(pair[0], pair[1])
		assert.Truef(t, err == nil && len(key) == 48, "%q: %q, %v", pair, key, err)
		other, taken := seen[key]
		assert.Falsef(t, taken, "%q and %q have the same key", pair, other)
		seen[key] = fmt.Sprint(pair)
		again, _ := client.FormKey(pair[0], pair[1])
		assert.Equalf(t, key, again, "%q, then", pair)
	}
	for _, pair := range [][2]string{{"", "f-1"}, {"ann", ""}} {
		key, err := client.FormKey(pair[0], pair[1])
		assert.Truef(t, err != nil && key == "", "%q: %q, %v", pair, key, err)
	}
	// The key of a long user name is short.
	key, err := client.FormKey(strings.Repeat("ann", 1000), "f-1")
	assert.Truef(t, err == nil && len(key) == 48, "%q, %v", key, err)
}

// An invoice is charged once, whichever program sends it and however often.
func ExampleContentKey() {
	key, err := client.ContentKey(map[string]any{"charge": "invoice", "number": "R-7", "cents": 1200})
	if err != nil {
		panic(err)
	}
	fmt.Println(key)
	// Output: content-JKEwkmffobh1BS1uHGkK3dUPkdbfrePEI-FwhppOcYk
}

// The form has a hidden field with an identifier that was created when the page was rendered.
func ExampleFormKey() {
	key, err := client.FormKey("ann", "0197f6a0-0000-7000-8000-000000000001")
	if err != nil {
		panic(err)
	}
	fmt.Println(key)
	// Output: form-Pazq3cBnzanO0NYgckFKFFI0HT3YQEksbb8iIBjqKTo
}
