package api

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Consumer accepts the messages that are posted to /v1/inbox/ and its name. Its senders are not Callers: the signature authenticates them.
type Consumer struct {
	// Tenant is whose the messages are; "" is "default".
	Tenant string
	// Keep is how long messages are stored as they were received, with their headers and so the signature, for operators to read.
	// The headers Authorization, Proxy-Authorization and Cookie are left out. Zero stores none.
	Keep time.Duration
	// CheckHeaders refuses a message that Verify will refuse whatever its body is, before that is read. The text of its error is shown
	// to the sender. nil: every body is read.
	CheckHeaders func(http.Header) error
	// Verify says whether the sender has signed the body, as it came, and returns the
	// message's id. The text of its error is shown to the sender.
	Verify func(h http.Header, body []byte) (id string, err error)
}

// checkConsumers returns a complete copy.
func checkConsumers(given map[string]Consumer) (map[string]Consumer, error) {
	complete := make(map[string]Consumer, len(given))
	for name, c := range given {
		m := transitions.Message{Tenant: c.Tenant, Consumer: name, ID: "any", Keep: c.Keep}.WithDefaults()
		if err := m.Check(); err != nil {
			return nil, fmt.Errorf("api: Config.Inbox[%q]: %w", name, err)
		}
		if c.Verify == nil {
			return nil, fmt.Errorf("api: Config.Inbox[%q] has no Verify", name)
		}
		c.Tenant = m.Tenant
		complete[name] = c
	}
	return complete, nil
}

// NoCommand is the answer to a message that is not a command, or no longer one.
type NoCommand struct {
	Ignored bool `json:"ignored,omitzero"` // nothing is to be done about such messages
	Expired bool `json:"expired,omitzero"` // it was done long ago
}

// receive consumes a signed message: POST /v1/inbox/{consumer}. Nothing touches the
// database before the signature is verified.
func (a *API) receive(w http.ResponseWriter, r *request) error {
	name, _ := r.value("consumer", Known)
	consumer, known := a.cfg.Inbox[name]
	if !known {
		return workflow.Errorf(workflow.NotFound, "the consumer does not exist")
	}
	if consumer.CheckHeaders != nil {
		if err := consumer.CheckHeaders(r.Header); err != nil {
			return workflow.Errorf(workflow.Unauthorized, "%s", err)
		}
	}
	body, err := a.body(w, r)
	if err != nil {
		return err
	}
	id, err := consumer.Verify(r.Header, body)
	if err != nil {
		return workflow.Errorf(workflow.Unauthorized, "%s", err)
	}
	if err := a.admit(w, consumer.Tenant, "", 1); err != nil {
		return err
	}
	m := transitions.Message{Tenant: consumer.Tenant, Consumer: name, ID: id, Body: body, Keep: consumer.Keep}
	if m.Keep != 0 {
		h := r.Header.Clone()
		for _, name := range []string{headerAuthorization, "Proxy-Authorization", "Cookie"} {
			h.Del(name)
		}
		m.Headers = h
	}
	receipt, err := a.engine.Consume(r.Context(), m)
	if workflow.CodeOf(err) == workflow.KeyExpired {
		// It was done long ago. The 410 of other commands would tell the sender that the consumer no longer exists.
		w.Header().Set(headerReplayed, "true")
		return sendJSON(w, http.StatusOK, NoCommand{Expired: true})
	}
	if err == nil {
		receipt, err = forCaller(&r.caller, "", receipt)
	}
	if err != nil {
		return err
	}
	return r.sendReceipt(w, receipt)
}

// DeadMessage is a message that was not consumed.
type DeadMessage struct {
	Consumer    string                `json:"consumer"`
	Message     string                `json:"message"` // the sender's id
	Hash        string                `json:"hash"`    // SHA-256 of its body in hexadecimal; two messages may have one id
	Type        string                `json:"type,omitempty"`
	Workflow    string                `json:"workflow,omitempty"`     // that takes it
	BusinessKey string                `json:"business_key,omitempty"` // that it names; the instance need not be there
	Instance    uuid.UUID             `json:"instance,omitzero"`      // likewise
	Size        int                   `json:"size"`                   // of its body in bytes
	Status      inspect.MessageStatus `json:"status"`
	Code        workflow.Code         `json:"code"`
	Failure     string                `json:"failure"`
	Deliveries  int                   `json:"deliveries"`
	CreatedAt   time.Time             `json:"created_at"`
	UpdatedAt   time.Time             `json:"updated_at"`
	ChangedBy   string                `json:"changed_by,omitempty"`
	Reason      string                `json:"reason,omitempty"`
}

// DeadMessagePage is a page of dead messages, by consumer and then the oldest
// first.
type DeadMessagePage struct {
	Messages []DeadMessage `json:"messages"`
	Next     string        `json:"next,omitempty"` // the cursor of the next page, "" on the last
}

// MessageOperation is what an operator says about a dead message.
type MessageOperation struct {
	Consumer string `json:"consumer"`
	Message  string `json:"message"`
	Hash     string `json:"hash"`
	Reason   string `json:"reason,omitempty"`
}

// deadMessageOf is the message as the interface shows it.
func deadMessageOf(m *inspect.DeadMessage) DeadMessage {
	return DeadMessage{Consumer: m.Consumer, Message: m.ID, Hash: hex.EncodeToString(m.Hash[:]), Type: m.Type,
		Workflow: m.Workflow, BusinessKey: m.BusinessKey, Instance: m.Instance, Size: m.Size, Status: m.Status,
		Code: m.Code, Failure: m.Failure, Deliveries: m.Deliveries, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
		ChangedBy: m.ChangedBy, Reason: m.Reason}
}

// deadMessages lists messages that were not consumed.
func (a *API) deadMessages(r *request) (out DeadMessagePage, err error) {
	f := inspect.DeadMessageFilter{Tenant: r.tenant(), Consumer: r.text("consumer"), Status: inspect.MessageStatus(r.text("status")),
		Workflow: r.text("workflow"), BusinessKey: r.text("business_key"), Limit: r.limit()}
	if f.After, err = byMessage.after(r); err != nil {
		return out, err
	}
	list, more, err := a.engine.Admin().DeadMessages(r.Context(), f)
	return DeadMessagePage{Messages: each(list, deadMessageOf), Next: byMessage.next(list, more)}, err
}

// deadMessageBody answers with a message as it was sent.
func (a *API) deadMessageBody(w http.ResponseWriter, r *request) error {
	ref, err := messageRef(r, r.text("consumer"), r.text("message"), r.text("hash"))
	if err != nil {
		return err
	}
	m, err := a.engine.Admin().DeadMessage(r.Context(), ref)
	if err != nil {
		return err
	}
	body, err := m.Sent()
	if err != nil {
		return err
	}
	send(w, http.StatusOK, mediaBytes, body) // whatever it is, no browser shall take it for a page
	return nil
}

// retryMessage consumes a dead message again.
func (a *API) retryMessage(w http.ResponseWriter, r *request) error {
	in, err := readJSON[MessageOperation](a, w, r)
	if err != nil {
		return err
	}
	ref, err := messageRef(r, in.Consumer, in.Message, in.Hash)
	if err != nil {
		return err
	}
	receipt, err := a.engine.Admin().RetryMessage(r.Context(), ref, r.caller.Actor, in.Reason)
	if err != nil {
		return err
	}
	return r.sendReceipt(w, receipt)
}

// discardMessage says that one is never to be done.
func (a *API) discardMessage(r *request, in MessageOperation) (DeadMessage, error) {
	ref, err := messageRef(r, in.Consumer, in.Message, in.Hash)
	if err != nil {
		return DeadMessage{}, err
	}
	m, err := a.engine.Admin().DiscardMessage(r.Context(), ref, r.caller.Actor, in.Reason)
	return deadMessageOf(&m), err
}

func messageRef(r *request, consumer, id, hash string) (transitions.MessageRef, error) {
	ref := transitions.MessageRef{Tenant: r.tenant(), Consumer: consumer, ID: id}
	if err := (transitions.Message{Tenant: r.tenant(), Consumer: consumer, ID: id}).Check(); err != nil {
		return ref, err
	}
	sum, err := hex.DecodeString(hash)
	if err != nil || len(sum) != len(ref.Hash) || strings.ToLower(hash) != hash {
		return ref, workflow.Errorf(workflow.InvalidRequest, "the hash is not 64 hexadecimal digits, as the list has it")
	}
	copy(ref.Hash[:], sum)
	return ref, nil
}

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
	raw := RawMessage{KeptMessage: keptMessageOf(&m), Headers: map[string][]string{}, Body: base64.StdEncoding.EncodeToString(m.Body)}
	for name, values := range m.Headers {
		name = strings.ToValidUTF8(name, "\uFFFD")
		for _, value := range values {
			raw.Headers[name] = append(raw.Headers[name], strings.ToValidUTF8(value, "\uFFFD"))
		}
	}
	return raw, err
}
