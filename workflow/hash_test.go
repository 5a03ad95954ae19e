package workflow

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type order struct {
	Lines []struct {
		Article string `json:"article" validate:"required,max=20"`
		Count   int    `json:"count" validate:"min=1"`
	} `json:"lines" validate:"min=1,dive"`
	Until time.Time         `json:"until,omitzero"`
	Notes map[string]string `json:"notes"`
}

// The same members in another order, described, in types of other names.
type orderAgain struct {
	Notes map[string]string `json:"notes,omitempty" jsonschema:"what the customer said"`
	Until time.Time         `json:"until"`
	Lines []lineAgain       `json:"lines" validate:"min=1,dive"`
}

type lineAgain struct {
	Count   int64  `json:"count" validate:"min=1" jsonschema:"how many"`
	Article string `json:"article" validate:"required,max=20"`
}

func TestTheTextOfASchemaIsNoPartOfTheHash(t *testing.T) {
	first, again := startWith[order](t), startWith[orderAgain](t)
	one, _ := first.Schema()
	other, _ := again.Schema()
	require.False(t, bytes.Equal(one, other), "the schemas are alike; the test shows nothing")
	if a, b := hashWith[order](t), hashWith[orderAgain](t); a != b {
		t.Errorf("two texts of one meaning: %s and %s", a, b)
	}
}

func TestAnotherPayloadIsAnotherHash(t *testing.T) {
	type member[T any] struct {
		A T `json:"a"`
	}
	seen := map[string]int{}
	for i, hash := range []string{
		hashWith[None](t), hashWith[order](t),
		hashWith[member[int]](t), hashWith[member[*int]](t), hashWith[member[int32]](t), hashWith[member[uint]](t),
		hashWith[member[float64]](t), hashWith[member[string]](t), hashWith[member[bool]](t), hashWith[member[any]](t),
		hashWith[member[time.Time]](t), hashWith[member[[]byte]](t), hashWith[member[[4]byte]](t), hashWith[member[[]int]](t),
		hashWith[member[[2]int]](t), hashWith[member[map[string]int]](t), hashWith[member[map[int]int]](t), hashWith[member[member[int]]](t),
		hashWith[struct {
			B int `json:"b"`
		}](t),
		hashWith[struct {
			A int `json:"a" validate:"min=1"`
		}](t),
		hashWith[struct {
			A int `json:"a,string"`
		}](t),
		hashWith[struct {
			A    int            `json:"a"`
			Rest map[string]int `json:",embed"`
		}](t),
	} {
		before, taken := seen[hash]
		assert.Falsef(t, taken, "payloads %d and %d have one hash", before, i)
		seen[hash] = i
	}
}

func hashWith[P any](t *testing.T) string {
	t.Helper()
	w, err := Define("w", 1, Start("start", "done", func(*Call, *struct{}, P) error { return nil })).Final("done").Build()
	require.NoError(t, err)
	return w.Hash
}
