package api

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// cursor says of a list how its cursors are written. A cursor is the last entry of the
// page before, behind a byte that says of which list, so that one list's cursors are not
// mistaken for another's. Callers must not look inside.
type cursor[T any] struct {
	list   byte
	fields func(*T) []any // pointers to what counts of an entry
	valid  func(*T) bool  // reports whether the entry can have come from this list; nil accepts any
}

var (
	byCreation = cursor[inspect.Place]{1, func(p *inspect.Place) []any { return []any{&p.At, &p.ID} }, nil}
	byUpdate   = cursor[inspect.Place]{6, func(p *inspect.Place) []any { return []any{&p.At, &p.ID} }, nil}
	byStart    = cursor[inspect.ChildPlace]{8, func(p *inspect.ChildPlace) []any { return []any{&p.Version, &p.Ordinal} },
		func(p *inspect.ChildPlace) bool { return p.Version >= 1 && p.Ordinal >= 0 }}
	byStuck = cursor[transitions.Record]{2, func(r *transitions.Record) []any { return []any{&r.UpdatedAt, &r.Scope, &r.Key} },
		func(r *transitions.Record) bool {
			return transitions.CheckScope(r.Scope) == nil && transitions.CheckKey(r.Key) == nil
		}}
	byInFlight = cursor[inspect.CommandPlace]{9,
		func(p *inspect.CommandPlace) []any {
			return []any{&p.Part, &p.Group, &p.Subgroup, &p.At, &p.Instance, &p.Scope, &p.Key}
		},
		func(p *inspect.CommandPlace) bool {
			named := p.Scope == "" && p.Key == "" || transitions.CheckScope(p.Scope) == nil && transitions.CheckKey(p.Key) == nil
			return named && p.Part >= 0 && transitions.TextProblem(p.Group, maxText) == "" && transitions.TextProblem(p.Subgroup, maxText) == ""
		}}
	byPause = cursor[inspect.PausedInstance]{10, func(p *inspect.PausedInstance) []any { return []any{&p.Instance, &p.Workflow} },
		func(p *inspect.PausedInstance) bool {
			return p.Workflow != "" && transitions.TextProblem(p.Workflow, maxText) == ""
		}}
	byTenant = cursor[inspect.SinkCursor]{3, func(c *inspect.SinkCursor) []any { return []any{&c.Tenant} },
		func(c *inspect.SinkCursor) bool { return c.Tenant != "" && transitions.CheckTenant(c.Tenant) == nil }}
	byDead = cursor[inspect.DeadLetter]{4,
		func(l *inspect.DeadLetter) []any { return []any{&l.Instance, &l.Position, &l.Ordinal, &l.Tenant} },
		func(l *inspect.DeadLetter) bool {
			return l.Tenant != "" && transitions.CheckTenant(l.Tenant) == nil && l.Position >= 1 && l.Ordinal >= 0
		}}
	byMessage = cursor[inspect.DeadMessage]{5,
		func(m *inspect.DeadMessage) []any { return []any{&m.CreatedAt, &m.Hash, &m.Consumer, &m.ID} },
		func(m *inspect.DeadMessage) bool {
			return (transitions.Message{Consumer: m.Consumer, ID: m.ID}).Check() == nil
		}}
	byReceipt = cursor[inspect.KeptMessage]{11,
		func(m *inspect.KeptMessage) []any { return []any{&m.ReceivedAt, &m.Hash, &m.Consumer, &m.ID} },
		func(m *inspect.KeptMessage) bool {
			return (transitions.Message{Consumer: m.Consumer, ID: m.ID}).Check() == nil
		}}
	byMaking = cursor[apikey.Key]{7, func(k *apikey.Key) []any { return []any{&k.CreatedAt, &k.ID, &k.Tenant} },
		func(k *apikey.Key) bool {
			return apikey.IsID(k.ID) && k.Tenant != "" && transitions.CheckTenant(k.Tenant) == nil
		}}
)

var errCursor = workflow.Errorf(workflow.InvalidRequest, "the cursor is not one of this list; begin again without it")

func (c *cursor[T]) encode(last *T) string {
	raw := []byte{c.list}
	fields := c.fields(last)
	for i, field := range fields {
		switch f := field.(type) {
		case *time.Time:
			raw = binary.BigEndian.AppendUint64(raw, uint64(f.UnixMicro()))
		case *int:
			raw = binary.BigEndian.AppendUint32(raw, uint32(*f))
		case *string:
			if i < len(fields)-1 { // the last one goes to the end
				raw = append(raw, byte(len(*f)))
			}
			raw = append(raw, *f...)
		default:
			raw, _ = binary.Append(raw, binary.BigEndian, f) // it has a fixed size
		}
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (c *cursor[T]) decode(s string) (last T, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) == 0 || raw[0] != c.list {
		return last, errCursor
	}
	in := bytes.NewBuffer(raw[1:])
	fields := c.fields(&last)
	for i, field := range fields {
		if !take(in, field, i == len(fields)-1) {
			return *new(T), errCursor
		}
	}
	// The decoder passes over line breaks, so look at the way back.
	if c.valid != nil && !c.valid(&last) || c.encode(&last) != s {
		return *new(T), errCursor
	}
	return last, nil
}

// take reads a field. It reports false where it is not there.
func take(in *bytes.Buffer, field any, isLast bool) bool {
	switch f := field.(type) {
	case *time.Time:
		var micro int64
		err := binary.Read(in, binary.BigEndian, &micro)
		*f = time.UnixMicro(micro).UTC()
		return err == nil && f.Year() >= 1 && f.Year() <= 9999
	case *int:
		var n int32
		err := binary.Read(in, binary.BigEndian, &n)
		*f = int(n)
		return err == nil
	case *string:
		n := in.Len()
		if !isLast && n > 0 {
			n = int(in.Next(1)[0])
		}
		*f = string(in.Next(n))
		return true
	}
	return binary.Read(in, binary.BigEndian, field) == nil
}

// after reads the position of the next page; the zero value is the beginning of the list.
func (c *cursor[T]) after(r *request) (last T, err error) {
	if s := r.text("cursor"); s != "" {
		last, err = c.decode(s)
	}
	return last, err
}

// next is the cursor after a page, "" where there is no more.
func (c *cursor[T]) next(page []T, more bool) string {
	if n := len(page); more && n > 0 {
		return c.encode(&page[n-1])
	}
	return ""
}
