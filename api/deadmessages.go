package api

import (
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

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

// DeadMessageOf is the message as the interface shows it.
func DeadMessageOf(m *inspect.DeadMessage) DeadMessage {
	return DeadMessage{Consumer: m.Consumer, Message: m.ID, Hash: hex.EncodeToString(m.Hash[:]), Type: m.Type,
		Workflow: m.Workflow, BusinessKey: m.BusinessKey, Instance: m.Instance, Size: m.Size, Status: m.Status,
		Code: m.Code, Failure: m.Failure, Deliveries: m.Deliveries, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
		ChangedBy: m.ChangedBy, Reason: m.Reason}
}

// deadMessages lists messages that were not consumed: GET /v1/ops/inbox.
func (a *API) deadMessages(w http.ResponseWriter, r *http.Request, c Caller) error {
	q, err := filtersOf(r, "consumer", "status", "workflow", "business_key", "limit", "cursor")
	if err != nil {
		return err
	}
	f := inspect.DeadMessageFilter{Tenant: c.Tenant, Consumer: q["consumer"], Status: inspect.MessageStatus(q["status"]),
		Workflow: q["workflow"], BusinessKey: q["business_key"]}
	if f.Limit, err = q.limit(); err != nil {
		return err
	}
	if cursor, given := q["cursor"]; given {
		if f.After, err = decodeMessageCursor(cursor); err != nil {
			return err
		}
	}
	list, more, err := a.engine.DeadMessages(r.Context(), f)
	if err != nil {
		return err
	}
	out := DeadMessagePage{Messages: make([]DeadMessage, len(list))}
	for i := range list {
		out.Messages[i] = DeadMessageOf(&list[i])
	}
	if n := len(list); more && n > 0 {
		out.Next = encodeMessageCursor(&list[n-1])
	}
	return sendJSON(w, http.StatusOK, out)
}

// deadMessageBody answers with a message as it was sent:
// GET /v1/ops/inbox/body.
func (a *API) deadMessageBody(w http.ResponseWriter, r *http.Request, c Caller) error {
	q, err := queryOf(r, "consumer", "message", "hash")
	if err != nil {
		return err
	}
	ref, err := messageRef(c, q["consumer"], q["message"], q["hash"])
	if err != nil {
		return err
	}
	m, err := a.engine.DeadMessage(r.Context(), ref)
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

// operateMessage retries or discards a dead message:
// POST /v1/ops/inbox/{action}. The same request again does no harm, so it needs no
// key.
func (a *API) operateMessage(w http.ResponseWriter, r *http.Request, c Caller) error {
	action := r.PathValue("action")
	if action != "retry" && action != "discard" {
		return errNothingHere
	}
	if _, err := queryOf(r); err != nil {
		return err
	}
	if err := unwanted(r, headerNotBefore, headerIfMatch, headerKey, headerScope); err != nil {
		return err
	}
	in, err := readJSON[MessageOperation](w, r, maxOperation)
	if err != nil {
		return err
	}
	ref, err := messageRef(c, in.Consumer, in.Message, in.Hash)
	if err != nil {
		return err
	}
	if action == "discard" {
		m, err := a.engine.DiscardMessage(r.Context(), ref, c.Actor, in.Reason)
		if err != nil {
			return err
		}
		return sendJSON(w, http.StatusOK, DeadMessageOf(&m))
	}
	receipt, err := a.engine.RetryMessage(r.Context(), ref, c.Actor, in.Reason)
	if err != nil {
		return err
	}
	return sendReceipt(w, receipt)
}

func messageRef(c Caller, consumer, id, hash string) (transitions.MessageRef, error) {
	ref := transitions.MessageRef{Tenant: c.Tenant, Consumer: consumer, ID: id}
	if err := (transitions.Message{Tenant: c.Tenant, Consumer: consumer, ID: id}).Check(); err != nil {
		return ref, err
	}
	sum, err := hex.DecodeString(hash)
	if err != nil || len(sum) != len(ref.Hash) || strings.ToLower(hash) != hash {
		return ref, workflow.Errorf(workflow.InvalidRequest, "the hash is not 64 hexadecimal digits, as the list has it")
	}
	copy(ref.Hash[:], sum)
	return ref, nil
}
