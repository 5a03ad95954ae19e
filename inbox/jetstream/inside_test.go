package jetstream

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
)

// said is a message with headers of its sender.
type said struct {
	jetstream.Msg
	subject string
	header  nats.Header
}

func (s said) Subject() string      { return s.subject }
func (s said) Headers() nats.Header { return s.header }
func (s said) Data() []byte         { return nil }
func (s said) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Stream: strings.Repeat("s", maxName), Sequence: jetstream.SequencePair{Stream: 1<<64 - 1},
		Timestamp: time.Unix(1<<33, 0), NumDelivered: 1}, nil
}

// Any message can be consumed or at least be stored as dead, and different ids remain different.
func FuzzMessage(f *testing.F) {
	f.Add("m-1", "m-2", "payment.captured", "payments.x")
	f.Add("", "", "", "")
	f.Add("\xff", "\x00", "\xff\x00", "\xe2\x82")
	f.Add(strings.Repeat("i", 256), strings.Repeat("i", 257), strings.Repeat("\u20ac", 100), "s")
	f.Fuzz(func(t *testing.T, id, other, kind, subject string) {
		c := Config{Consumer: "c", TypeHeader: "ce-type"}
		message := func(id string) transitions.Message {
			m, err := c.message(said{subject: subject, header: nats.Header{jetstream.MsgIDHeader: {id}, "ce-type": {kind}}}, time.Time{})
			require.NoError(t, err)
			assert.NoErrorf(t, m.Check(), "%q, %q", id, kind)
			return m
		}
		a, b := message(id), message(other)
		assert.Falsef(t, (id == other) != (a.ID == b.ID) && !strings.HasPrefix(id+other, "sha256:") && !strings.HasPrefix(other, "sha256:"),
			"%q and %q became %q and %q", id, other, a.ID, b.ID)
		given := kind
		assert.Falsef(t, given != "" && utf8.ValidString(given) && len(given) <= transitions.MaxKey && !strings.Contains(given, "\x00") &&
			a.Type != given, "type %q became %q", given, a.Type)
	})
}
