package rows

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
)

func TestARowTellsOfItsFirstMismatch(t *testing.T) {
	t.Parallel()
	eight := []byte{0, 0, 0, 0, 0, 0, 0, 1}
	for _, tt := range []struct {
		name string
		read func(*Row)
		want string
	}{
		{"a size", func(r *Row) { r.Int8(); r.UUID(); r.Bool() }, "read column 2: it has 8 bytes, not 16"},
		{"a column too many", func(r *Row) { r.Skip(2); r.Text(); r.UUID() }, "read column 2: there is no such column"},
		{"none", func(r *Row) { r.Int8(); r.Time() }, ""},
	} {
		r := Read([][]byte{eight, eight})
		tt.read(r)
		got := ""
		if err := r.Err(); err != nil {
			got = err.Error()
		}
		assert.Equal(t, tt.want, got, tt.name)
	}
}

func TestNullsReadAsZero(t *testing.T) {
	t.Parallel()
	r := Read(make([][]byte, 12))
	zero := r.Text() == "" && r.Bytes() == nil && r.JSONB() == nil && r.UUID() == uuid.Nil && r.TID() == RowID{} && r.Hash() == [32]byte{} &&
		r.Int8() == 0 && r.Int4() == 0 && r.Int2() == 0 && !r.Bool() && r.Time().IsZero() && r.IsNull()
	err := r.Err()
	assert.Truef(t, err == nil && zero, "got %v, %v", zero, err)
}

func TestRead_Copies(t *testing.T) {
	t.Parallel()
	value := []byte("abc")
	r := Read([][]byte{value, value, value})
	text, raw, doc := r.Text(), r.Bytes(), r.JSONB()
	copy(value, "xyz")
	assert.Truef(t, text == "abc" && string(raw) == "abc" && string(doc) == "bc", "got %s %s %s", text, raw, doc)
}

func TestARowTellsHowLargeTheRestIs(t *testing.T) {
	r := Read([][]byte{{1}, nil, []byte("four")})
	assert.Equal(t, 5, r.Size(), "want 5")
	r.Skip(1)
	assert.Equal(t, 4, r.Size(), "want 4")
	r.Skip(3)
	assert.Equal(t, 0, r.Size(), "want 0")
}
