package audit_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
)

func TestHistoryReturnsWhatWasAdded(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	got, err := b.table.History(t.Context(), tenant, second, 0, 100)
	assert.Truef(t, err == nil && reflect.DeepEqual(got, b.read(second)), "got %+v, %v\nwant %+v", got, err, b.read(second))
	b.exec(t, "UPDATE pawl.audit SET payload = NULL, payload_digest = sha256('x'), data = NULL, data_digest = sha256('x')"+where(second, 2))
	got, err = b.table.History(t.Context(), tenant, second, 1, 1)
	assert.Truef(t, err == nil && len(got) == 1 && got[0].Payload == nil && got[0].Data == nil && got[0].Actor == "ann",
		"redacted: got %+v, %v", got, err)
}

func TestHistoryGoesPageByPage(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for _, limit := range []int{1, 2, 3, 4, 5} {
		var all []transitions.Entry
		for after := int64(0); ; {
			page, err := b.table.History(t.Context(), tenant, second, after, limit)
			require.NoError(t, err)
			require.Truef(t, len(page) <= limit, "%d entries of %d asked for", len(page), limit)
			if len(page) == 0 {
				break
			}
			all = append(all, page...)
			after = page[len(page)-1].Version
		}
		assert.Equalf(t, b.read(second), all, "pages of %d: got %d entries", limit, len(all))
	}
}

func TestHistoryIsOfOneTenantsInstance(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for name, id := range map[string]uuid.UUID{"other": second, tenant: uuid.New()} {
		got, err := b.table.History(t.Context(), name, id, 0, 10)
		assert.Truef(t, err == nil && len(got) == 0, "%s, %s: got %+v, %v", name, id, got, err)
	}
}

func TestEntriesAreFoundByVersionAndByTime(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for i, want := range b.read(second) {
		got, err := b.table.At(t.Context(), tenant, second, want.Version)
		assert.Truef(t, err == nil && reflect.DeepEqual(got, b.read(second)[i:i+1]), "version %d: got %+v, %v", want.Version, got, err)
		for _, after := range []time.Duration{0, 999 * time.Nanosecond, 900 * time.Millisecond} {
			got, err = b.table.AsOf(t.Context(), tenant, second, want.At.Add(after))
			assert.Truef(t, err == nil && reflect.DeepEqual(got, b.read(second)[i:i+1]),
				"%s after version %d: got %+v, %v", after, want.Version, got, err)
		}
	}
	for what, find := range map[string]func() ([]transitions.Entry, error){
		"a version beyond": func() ([]transitions.Entry, error) { return b.table.At(t.Context(), tenant, second, 5) },
		"version 0":        func() ([]transitions.Entry, error) { return b.table.At(t.Context(), tenant, second, 0) },
		"another tenant":   func() ([]transitions.Entry, error) { return b.table.At(t.Context(), "other", second, 1) },
		"before it was": func() ([]transitions.Entry, error) {
			return b.table.AsOf(t.Context(), tenant, second, b.read(second)[0].At.Add(-time.Nanosecond))
		},
	} {
		got, err := find()
		assert.Truef(t, err == nil && len(got) == 0, "%s: got %+v, %v", what, got, err)
	}
}
