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

// Limits of a message's parts, in bytes.
const (
	MaxConsumer = workflow.MaxConsumer
	MaxMessage  = 1 << 20 // of a body
)

// MaxKeep is the longest Keep of a message.
const MaxKeep = 3660 * 24 * time.Hour

// Message is what somebody outside has sent: one delivery of it.
type Message struct {
	Tenant   string // "" is "default"
	Consumer string // who consumes it, 1 to 249 bytes
	ID       string // the sender's id, 1 to 255 bytes; the same whenever he sends it again
	Type     string // what the sender calls it; "" is the member "type" of the body, where it has one
	Body     []byte // as it was sent, up to 1 MiB
	Delivery int    // which delivery this is, from 1; 0: nobody counts them
	Earlier  bool   // there may have been deliveries that are not counted

	// Keep is how long the message is stored as it was received, with its Headers, for operators to read. Zero does not store it.
	Keep    time.Duration
	Headers map[string][]string

	Trace tracing.Context // where in a trace it was sent; nowhere: the context of the call tells
}

// A message is a command. Its scope is this and the consumer, its key is the id,
// its fingerprint the hash of the body.
const inboxScope = "inbox:"

// InboxScope is the scope of the commands that a consumer's messages become. It is
// their actor as well.
func InboxScope(consumer string) string { return inboxScope + consumer }

// WithDefaults fills what may be left empty.
func (m Message) WithDefaults() Message {
	if m.Tenant == "" {
		m.Tenant = DefaultTenant
	}
	if m.Type == "" {
		m.Type = typeOf(m.Body)
	}
	return m
}

// Check refuses what cannot be stored. It does not look into the body. Only of a
// message that is otherwise in order it says TooLarge: that can be listed as dead.
func (m Message) Check() error {
	if err := CheckTenant(m.Tenant); err != nil {
		return err
	}
	if m.Consumer == "" {
		return workflow.Errorf(workflow.InvalidRequest, "the consumer of the message is missing")
	}
	if problem := TextProblem(m.Consumer, MaxConsumer); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the consumer of the message %s", problem)
	}
	if m.ID == "" {
		return workflow.Errorf(workflow.InvalidRequest, "the id of the message is missing")
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

// Hash tells two messages apart that have one id: SHA-256 of the body.
func (m Message) Hash() [32]byte { return sha256.Sum256(m.Body) }

// MessageRef names a message: two with one id are two messages.
type MessageRef struct {
	Tenant   string
	Consumer string
	ID       string
	Hash     [32]byte
}

// Ref is the name of the message.
func (m Message) Ref() MessageRef { return MessageRef{m.Tenant, m.Consumer, m.ID, m.Hash()} }

// About is what a message is for, as far as it can be read. The instance need not be
// there.
type About struct {
	Workflow    string // that takes it; "": none does
	BusinessKey string
	Instance    uuid.UUID
}

// typeOf is what a sender calls a message: the member "type" of its body, as in
// Standard Webhooks and CloudEvents. "" where there is none, or none that can be
// stored.
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
