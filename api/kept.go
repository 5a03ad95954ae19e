package api

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/inspect"
)

// KeptMessage describes a stored original message.
type KeptMessage struct {
	Consumer   string    `json:"consumer"`
	Message    string    `json:"message"` // the sender's id
	Hash       string    `json:"hash"`    // SHA-256 of its body in hexadecimal; two messages may have one id
	Size       int       `json:"size"`    // of its body in bytes
	ReceivedAt time.Time `json:"received_at"`
	KeepUntil  time.Time `json:"keep_until"` // the time of its deletion
}

// KeptMessagePage is a page of kept messages, ordered by consumer and time of receipt.
type KeptMessagePage struct {
	Messages []KeptMessage `json:"messages"`
	Next     string        `json:"next,omitempty"` // the cursor of the next page, "" on the last
}

// RawMessage is a kept message with its headers and its body.
type RawMessage struct {
	KeptMessage
	Headers map[string][]string `json:"headers"` // of the first delivery, including the signature; invalid UTF-8 is replaced
	Body    string              `json:"body"`    // in base64
}

// keptMessageOf converts m to its JSON form.
func keptMessageOf(m *inspect.KeptMessage) KeptMessage {
	return KeptMessage{Consumer: m.Consumer, Message: m.ID, Hash: hex.EncodeToString(m.Hash[:]), Size: m.Size, ReceivedAt: m.ReceivedAt,
		KeepUntil: m.KeepUntil}
}

// rawMessageOf converts m, with headers and body, to its JSON form.
func rawMessageOf(m *inspect.KeptMessage) RawMessage {
	raw := RawMessage{KeptMessage: keptMessageOf(m), Headers: map[string][]string{}, Body: base64.StdEncoding.EncodeToString(m.Body)}
	for name, values := range m.Headers {
		name = strings.ToValidUTF8(name, "\uFFFD")
		for _, value := range values {
			raw.Headers[name] = append(raw.Headers[name], strings.ToValidUTF8(value, "\uFFFD"))
		}
	}
	return raw
}

// keptMessages lists kept messages.
func (a *API) keptMessages(r *request) (out KeptMessagePage, err error) {
	f := inspect.KeptMessageFilter{Tenant: r.tenant(), Consumer: r.text("consumer"), ID: r.text("message"), Limit: r.limit()}
	if f.After, err = byReceipt.after(r); err != nil {
		return out, err
	}
	list, more, err := a.engine.Admin().KeptMessages(r.Context(), f)
	return KeptMessagePage{Messages: each(list, keptMessageOf), Next: byReceipt.next(list, more)}, err
}

// keptMessage returns a message as it was received.
func (a *API) keptMessage(r *request) (RawMessage, error) {
	ref, err := messageRef(r, r.text("consumer"), r.text("message"), r.text("hash"))
	if err != nil {
		return RawMessage{}, err
	}
	if err := r.holder.Take(r.Context(), budget.Page); err != nil { // base64 and JSON take more than the stored bytes
		return RawMessage{}, err
	}
	m, err := a.engine.Admin().KeptMessage(r.Context(), ref)
	return rawMessageOf(&m), err
}
