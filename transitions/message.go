package transitions

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/workflow"
)

// Limits of a message's parts in bytes.
const (
	MaxConsumer = workflow.MaxConsumer
	MaxMessage  = 1 << 20 // of a body
)

// MaxKeep is the maximum Keep of a message.
const MaxKeep = 3660 * 24 * time.Hour

// Message is a delivery of a message from another system.
type Message struct {
	Tenant   string // defaults to "default"
	Consumer string // 1 to 249 bytes
	ID       string // assigned by the sender, 1 to 255 bytes; the same in repetitions
	Type     string // defaults to the member "type" of the body
	Body     []byte // as received, up to 1 MiB
	Delivery int    // number of this delivery, from 1; 0: unknown
	Earlier  bool   // there may have been uncounted deliveries

	// Keep is how long the message is stored as received, with its Headers, for operators. Zero does not store it.
	Keep    time.Duration
	Headers map[string][]string

	Trace tracing.Context // trace context of the message; defaults to that of the call's context
}

// Message commands have the scope inboxScope plus the consumer, the id as key, and the hash of the body as fingerprint.
const inboxScope = "inbox:"

// InboxScope returns the scope of the commands for a consumer's messages, which is also their actor.
func InboxScope(consumer string) string { return inboxScope + consumer }

// WithDefaults returns the message with defaults.
func (m Message) WithDefaults() Message {
	if m.Tenant == "" {
		m.Tenant = DefaultTenant
	}
	if m.Type == "" {
		m.Type = typeOf(m.Body)
	}
	return m
}

// Check validates a message without its body. It returns TooLarge only if the message is otherwise
// valid, so that it can be stored as a dead message.
func (m Message) Check() error {
	if err := CheckTenant(m.Tenant); err != nil {
		return err
	}
	if m.Consumer == "" {
		return workflow.Errorf(workflow.InvalidRequest, "a message requires a consumer")
	}
	if problem := TextProblem(m.Consumer, MaxConsumer); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the consumer of the message %s", problem)
	}
	if m.ID == "" {
		return workflow.Errorf(workflow.InvalidRequest, "a message requires an id")
	}
	if problem := TextProblem(m.ID, MaxKey); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the id of the message %s", problem)
	}
	if problem := TextProblem(m.Type, MaxKey); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the type of the message %s", problem)
	}
	if m.Keep < 0 || m.Keep > MaxKeep {
		return workflow.Errorf(workflow.InvalidRequest, "a message is kept for 0 to %d days", MaxKeep/(24*time.Hour))
	}
	if len(m.Body) > MaxMessage {
		return workflow.Errorf(workflow.TooLarge, "the message is larger than %d bytes", MaxMessage)
	}
	return nil
}

// Hash returns the SHA-256 of the body, which distinguishes messages with the same id.
func (m Message) Hash() [32]byte { return sha256.Sum256(m.Body) }

// MessageRef identifies a message. Two messages may have the same id.
type MessageRef struct {
	Tenant   string
	Consumer string
	ID       string
	Hash     [32]byte
}

// Ref returns the identity of the message.
func (m Message) Ref() MessageRef { return MessageRef{m.Tenant, m.Consumer, m.ID, m.Hash()} }

// About describes the target of a message, as far as known. The instance may not exist.
type About struct {
	Workflow    string // that accepts it; "": none
	BusinessKey string
	Instance    uuid.UUID
}

// typeOf returns the member "type" of a body, as in Standard Webhooks and CloudEvents, or "" if absent or not storable.
func typeOf(body []byte) string {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return ""
	}
	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return ""
		}
		if name.String() != "type" {
			if err := d.SkipValue(); err != nil {
				return ""
			}
			continue
		}
		value, err := d.ReadToken()
		if err != nil && !errors.Is(err, io.EOF) || value.Kind() != '"' || TextProblem(value.String(), MaxKey) != "" {
			return ""
		}
		return value.String()
	}
}
