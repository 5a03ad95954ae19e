package workflow

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// MaxConsumer is the longest name of a consumer in bytes.
const MaxConsumer = 249

// Message is a received message as a [Mapping] sees it.
type Message struct {
	Tenant   string
	Consumer string
	ID       string // the sender's; the same whenever he sends it again
	Type     string // what the sender calls it; "" where he does not say
	Body     []byte // as it was sent; it must not be changed
}

// Address is the instance that a message is for: by its business key or by its
// id. For a [Start] it is the zero Address.
type Address struct {
	BusinessKey string
	Instance    uuid.UUID
}

// Errors of a mapping that makes no command of a message.
var (
	// ErrNotMine passes the message on to the next transition that receives from
	// the consumer.
	ErrNotMine = errors.New("the message is not for this transition")
	// ErrIgnored passes the message on as well. If no other transition takes it, it needs no action, and that is not a failure.
	ErrIgnored = errors.New("there is nothing to be done about the message")
)

// Mapping makes commands with payload P of messages; see [JSON]. It is pure: the
// same message always becomes the same command.
type Mapping[P any] struct {
	to    func(Message) (Address, P, error)
	check func() error
}

// JSON is a mapping of messages whose body is JSON, for example of the webhooks
// of a payment provider:
//
//	workflow.On("dispute", workflow.From(Paid, Shipped), Disputed, dispute).
//		Receive("payments", workflow.JSON(func(m workflow.Message, n Notice) (workflow.Address, Dispute, error) {
//			if m.Type != "charge.disputed" {
//				return workflow.Address{}, Dispute{}, workflow.ErrNotMine
//			}
//			return workflow.Address{BusinessKey: n.Data.Reference}, Dispute{Reason: n.Data.Reason}, nil
//		}))
//
// A body may have fields that M does not: it is the sender's. What does not fit M,
// or breaks the rule of a validate tag, is not for this transition; if no other
// one takes it the failure says why. An error of the function, other than
// [ErrNotMine] and [ErrIgnored], says that the message is for this transition and
// makes no sense; its text is shown.
func JSON[M, P any](to func(m Message, body M) (Address, P, error)) Mapping[P] {
	if to == nil {
		return Mapping[P]{}
	}
	isStruct := reflect.TypeFor[M]().Kind() == reflect.Struct
	return Mapping[P]{
		to: func(m Message) (a Address, p P, err error) {
			var body M
			if err := json.Unmarshal(m.Body, &body, jsonData); err != nil {
				return a, p, unreadable{unreadableFields(m.Body, reflect.TypeFor[M](), jsonData, err)}
			}
			if isStruct {
				if err := validateStruct(body); err != nil {
					return a, p, unreadable{err}
				}
			}
			return to(m, body)
		},
		check: func() error {
			var body M
			if !isStruct {
				return nil
			}
			if err := validateStruct(body); CodeOf(err) == Internal { // a rule that does not exist
				return fmt.Errorf("message %s: %w", reflect.TypeFor[M](), errors.Unwrap(err))
			}
			return nil
		},
	}
}

// unreadable is a message that does not fit the Go type of a mapping.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// Is makes it a reason to ask the next transition.
func (u unreadable) Is(target error) bool { return target == ErrNotMine }

// Receive makes the transition receive messages of a consumer: the mapping makes one command of each message id that is passed to the
// engine for this consumer. The command has every role; its actor is "inbox:" and the consumer.
//
// Several transitions, of several workflows, may receive from one consumer. They are called in the order of the workflows' names and of
// their declaration, and the first that takes the message gets it. The newest version of each workflow is called, after the default version
// if that is older. What a workflow receives is not part of its hash: it changes no instance, so it may change without a new version.
func (t *Transition[D, P]) Receive(consumer string, m Mapping[P]) *Transition[D, P] {
	t.spec.Receives = append(t.spec.Receives, m.erase(consumer))
	return t
}

// Receive makes the activity listen to a consumer; see [Transition.Receive].
func (a *Activity[D, P, R]) Receive(consumer string, m Mapping[P]) *Activity[D, P, R] {
	a.accepting.Receive(consumer, m)
	return a
}

// Reception is what a step receives from one consumer, with its types erased.
type Reception struct {
	Consumer string
	take     func(Message) (Address, []byte, error)
	check    func() error
}

// Take makes a command's address and payload of a message. An error that is
// [ErrNotMine] or [ErrIgnored] leaves it to others; any other is an *Error. Take
// does not recover panics.
func (r *Reception) Take(m Message) (Address, []byte, error) {
	a, payload, err := r.take(m)
	if err == nil || errors.Is(err, ErrNotMine) || errors.Is(err, ErrIgnored) {
		return a, payload, err
	}
	text := err.Error()
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Code == InvalidPayload || e.Code == Internal {
			return a, nil, e
		}
		text = e.Message
	}
	return a, nil, &Error{Code: InvalidPayload, Message: "the message makes no sense: " + text}
}

func (m Mapping[P]) erase(consumer string) *Reception {
	r := &Reception{Consumer: consumer, check: m.check}
	if m.to == nil {
		return r
	}
	r.take = func(msg Message) (Address, []byte, error) {
		a, p, err := m.to(msg)
		if err != nil {
			return a, nil, err
		}
		raw, err := json.Marshal(p, jsonOut)
		if err != nil {
			return a, nil, &Error{Code: Internal, Message: "the payload that a message became cannot be encoded", Cause: err}
		}
		return a, raw, nil
	}
	return r
}

func (s *Step) checkReceives(m *Mistakes) {
	for _, r := range s.Receives {
		switch {
		case r.Consumer == "":
			m.add("transition %q receives from a consumer without a name", s.Name)
		case len(r.Consumer) > MaxConsumer || !utf8.ValidString(r.Consumer) || strings.ContainsRune(r.Consumer, 0):
			m.add("transition %q receives from consumer %q, whose name is longer than %d bytes or cannot be stored", s.Name, r.Consumer, MaxConsumer)
		}
		if r.take == nil {
			m.add("transition %q receives from consumer %q without a function", s.Name, r.Consumer)
		} else if err := r.check(); err != nil {
			m.add("transition %q receives from consumer %q: %v", s.Name, r.Consumer, err)
		}
	}
}
