package rows

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Row reads the columns of a result in binary format, from left to right. Err returns the first mismatch. Returned values are copies.
type Row struct {
	values [][]byte
	next   int
	err    error
}

// Read begins with the first column of a row.
func Read(values [][]byte) *Row { return &Row{values: values} }

// Err returns the first mismatch.
func (r *Row) Err() error { return r.err }

func (r *Row) take(size int) []byte {
	if r.next >= len(r.values) {
		r.fail("there is no such column")
		return nil
	}
	v := r.values[r.next]
	r.next++
	if v != nil && size > 0 && len(v) != size {
		r.fail(fmt.Sprintf("it has %d bytes, not %d", len(v), size))
		return nil
	}
	return v
}

func (r *Row) fail(problem string) {
	if r.err == nil {
		r.err = fmt.Errorf("read column %d: %s", r.next, problem)
	}
}

// IsNull looks at the next column without taking it.
func (r *Row) IsNull() bool { return r.next < len(r.values) && r.values[r.next] == nil }

// Size returns the number of unread bytes.
func (r *Row) Size() (n int) {
	for _, v := range r.values[min(r.next, len(r.values)):] {
		n += len(v)
	}
	return n
}

// Skip passes over n columns.
func (r *Row) Skip(n int) { r.next += n }

// Text reads a text or json column; NULL is "".
func (r *Row) Text() string { return string(r.take(0)) }

// Bytes reads a bytea, text or json column; NULL is nil.
func (r *Row) Bytes() []byte {
	v := r.take(0)
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}

// JSONB reads a jsonb column; NULL is nil.
func (r *Row) JSONB() []byte {
	v := r.Bytes()
	if len(v) == 0 {
		return nil
	}
	return v[1:]
}

// UUID reads a uuid column; NULL is the zero UUID.
func (r *Row) UUID() (id uuid.UUID) {
	copy(id[:], r.take(16))
	return id
}

// TID reads a tid column; NULL is the zero RowID.
func (r *Row) TID() (id RowID) {
	copy(id[:], r.take(6))
	return id
}

// Hash reads a bytea column of 32 bytes; NULL is all zero.
func (r *Row) Hash() (h [32]byte) {
	copy(h[:], r.take(32))
	return h
}

// Int8 reads a bigint column; NULL is 0.
func (r *Row) Int8() int64 {
	if v := r.take(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

// Int4 reads an int column; NULL is 0.
func (r *Row) Int4() int {
	if v := r.take(4); v != nil {
		return int(int32(binary.BigEndian.Uint32(v)))
	}
	return 0
}

// Int2 reads a smallint column; NULL is 0.
func (r *Row) Int2() int {
	if v := r.take(2); v != nil {
		return int(int16(binary.BigEndian.Uint16(v)))
	}
	return 0
}

// Bool reads a boolean column; NULL is false.
func (r *Row) Bool() bool {
	v := r.take(1)
	return len(v) == 1 && v[0] != 0
}

// Time reads a timestamptz column; NULL is the zero time.
func (r *Row) Time() time.Time {
	v := r.take(8)
	if v == nil {
		return time.Time{}
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(v)) + pgEpoch).UTC()
}
