package api

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A cursor is the last entry of the page before, behind a byte that says of
// which list, so that one list's cursors are not mistaken for another's.
const (
	cursorByID      = 1 // instances: the id
	cursorByStuck   = 2 // stuck commands: when they changed last, scope, key
	cursorBySink    = 3 // a sink's cursors: the tenant
	cursorByDead    = 4 // dead letters: tenant, instance, position, ordinal
	cursorByUpdate  = 6 // instances: when they were updated, the id
	cursorByMessage = 5 // dead messages: when they failed first, hash, consumer, id
)

var errCursor = workflow.Errorf(workflow.InvalidRequest, "the cursor is not one of this list; begin again without it")

// encodeCursor writes the cursor as callers see it. They must not look inside.
func encodeCursor(last uuid.UUID) string {
	raw := append([]byte{cursorByID}, last[:]...)
	return base64.RawURLEncoding.EncodeToString(raw)
}

func decodeCursor(s string) (uuid.UUID, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err == nil && len(raw) == 17 && raw[0] == cursorByID {
		// The decoder passes over line breaks, so look at the way back.
		if id := uuid.UUID(raw[1:]); encodeCursor(id) == s {
			return id, nil
		}
	}
	return uuid.Nil, errCursor
}

// encodePlace writes where a list of instances goes on.
func encodePlace(order inspect.Order, p inspect.Place) string {
	if order == inspect.ByID {
		return encodeCursor(p.ID)
	}
	raw := binary.BigEndian.AppendUint64([]byte{cursorByUpdate}, uint64(p.UpdatedAt.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(raw, p.ID[:]...))
}

func decodePlace(order inspect.Order, s string) (p inspect.Place, err error) {
	if order == inspect.ByID {
		p.ID, err = decodeCursor(s)
		return p, err
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != 1+8+16 || raw[0] != cursorByUpdate {
		return p, errCursor
	}
	p = inspect.Place{UpdatedAt: time.UnixMicro(int64(binary.BigEndian.Uint64(raw[1:]))).UTC(), ID: uuid.UUID(raw[9:])}
	if encodePlace(order, p) != s || p.UpdatedAt.Year() < 1 || p.UpdatedAt.Year() > 9999 {
		return inspect.Place{}, errCursor
	}
	return p, nil
}

func encodeStuckCursor(last *transitions.Record) string {
	raw := binary.BigEndian.AppendUint64([]byte{cursorByStuck}, uint64(last.UpdatedAt.UnixMicro()))
	raw = append(raw, byte(len(last.Scope)))
	raw = append(raw, last.Scope...)
	raw = append(raw, last.Key...)
	return base64.RawURLEncoding.EncodeToString(raw)
}

func decodeStuckCursor(s string) (transitions.Record, error) {
	const head = 1 + 8 + 1
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) < head || raw[0] != cursorByStuck || len(raw) < head+int(raw[head-1]) {
		return transitions.Record{}, errCursor
	}
	last := transitions.Record{UpdatedAt: time.UnixMicro(int64(binary.BigEndian.Uint64(raw[1:]))).UTC()}
	scope := head + int(raw[head-1])
	last.Scope, last.Key = string(raw[head:scope]), string(raw[scope:])
	// Nobody has such a page who did not get it from here.
	if transitions.CheckScope(last.Scope) != nil || transitions.CheckKey(last.Key) != nil || encodeStuckCursor(&last) != s ||
		last.UpdatedAt.Year() < 1 || last.UpdatedAt.Year() > 9999 {
		return transitions.Record{}, errCursor
	}
	return last, nil
}

func encodeMessageCursor(last *inspect.DeadMessage) string {
	raw := binary.BigEndian.AppendUint64([]byte{cursorByMessage}, uint64(last.CreatedAt.UnixMicro()))
	raw = append(raw, last.Hash[:]...)
	raw = append(raw, byte(len(last.Consumer)))
	raw = append(raw, last.Consumer...)
	raw = append(raw, last.ID...)
	return base64.RawURLEncoding.EncodeToString(raw)
}

func decodeMessageCursor(s string) (inspect.DeadMessage, error) {
	const head = 1 + 8 + 32 + 1
	var last inspect.DeadMessage
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) < head || raw[0] != cursorByMessage || len(raw) < head+int(raw[head-1]) {
		return last, errCursor
	}
	last.CreatedAt = time.UnixMicro(int64(binary.BigEndian.Uint64(raw[1:]))).UTC()
	copy(last.Hash[:], raw[9:])
	name := head + int(raw[head-1])
	last.Consumer, last.ID = string(raw[head:name]), string(raw[name:])
	if (transitions.Message{Consumer: last.Consumer, ID: last.ID}).Check() != nil || encodeMessageCursor(&last) != s ||
		last.CreatedAt.Year() < 1 || last.CreatedAt.Year() > 9999 {
		return inspect.DeadMessage{}, errCursor
	}
	return last, nil
}

func encodeSinkCursor(last *inspect.SinkCursor) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{cursorBySink}, last.Tenant...))
}

func decodeSinkCursor(s string) (tenant string, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) < 2 || raw[0] != cursorBySink {
		return "", errCursor
	}
	last := inspect.SinkCursor{Tenant: string(raw[1:])}
	if transitions.CheckTenant(last.Tenant) != nil || encodeSinkCursor(&last) != s {
		return "", errCursor
	}
	return last.Tenant, nil
}

func encodeDeadCursor(last *inspect.DeadLetter) string {
	raw := append([]byte{cursorByDead}, last.Instance[:]...)
	raw = binary.BigEndian.AppendUint64(raw, uint64(last.Position))
	raw = binary.BigEndian.AppendUint32(raw, uint32(last.Ordinal))
	return base64.RawURLEncoding.EncodeToString(append(raw, last.Tenant...))
}

func decodeDeadCursor(s string) (inspect.DeadLetter, error) {
	const head = 1 + 16 + 8 + 4
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) <= head || raw[0] != cursorByDead {
		return inspect.DeadLetter{}, errCursor
	}
	last := inspect.DeadLetter{
		Instance: uuid.UUID(raw[1:17]), Position: int64(binary.BigEndian.Uint64(raw[17:])), Ordinal: int(binary.BigEndian.Uint32(raw[25:])),
		Tenant: string(raw[head:]),
	}
	if transitions.CheckTenant(last.Tenant) != nil || last.Position < 1 || last.Ordinal > math.MaxInt32 || encodeDeadCursor(&last) != s {
		return inspect.DeadLetter{}, errCursor
	}
	return last, nil
}
