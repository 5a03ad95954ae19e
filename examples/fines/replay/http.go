package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// HTTP is the server at an address like "http://localhost:8080" as a target: its POST /v1/commands. A nil client means one with enough
// connections for all callers.
//
// A call is one request with commands of one tenant. Without an answer, or with a retryable one, the replies have a retryable error.
func HTTP(baseURL string, client *http.Client) Target {
	if client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 2 * pairs
		client = &http.Client{Transport: transport}
	}
	return &server{address: strings.TrimRight(baseURL, "/") + "/v1/commands", client: client}
}

type server struct {
	address string
	client  *http.Client
}

// SubmitMany implements Target.
func (s *server) SubmitMany(ctx context.Context, cs []transitions.Command) []transitions.Reply {
	results, err := s.post(ctx, cs)
	if err == nil && len(results) != len(cs) {
		err = unanswered(fmt.Errorf("%d answers to %d commands", len(results), len(cs)))
	}
	replies := make([]transitions.Reply, len(cs))
	for i := range replies {
		if replies[i].Err = err; err == nil {
			replies[i] = replyOf(results[i])
		}
	}
	return replies
}

// post sends one request.
func (s *server) post(ctx context.Context, cs []transitions.Command) (results []wire.BulkResult, err error) {
	items := make([]wire.BulkCommand, len(cs))
	for i, c := range cs {
		items[i] = wire.BulkCommand{Workflow: c.Workflow, Transition: c.Transition, BusinessKey: c.BusinessKey, Key: c.Key, Payload: c.Payload}
		if c.Instance != uuid.Nil {
			items[i].Instance = c.Instance.String()
		}
	}
	body, err := json.Marshal(items)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Pawl-Tenant", cs[0].Tenant)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, unanswered(err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode == http.StatusOK {
		if err := json.UnmarshalRead(response.Body, &results); err != nil {
			return nil, unanswered(err)
		}
		return results, nil
	}
	var p transitions.Problem
	if err := json.UnmarshalRead(response.Body, &p); err != nil || p.Code == "" {
		return nil, unanswered(fmt.Errorf("HTTP status %d without a problem document", response.StatusCode))
	}
	return nil, p.Err()
}

// replyOf reads one result: what is stored is a receipt, all else an error.
func replyOf(r wire.BulkResult) transitions.Reply {
	receipt := transitions.Receipt{Status: r.Status, Replayed: r.Replayed, Body: r.Body}
	if receipt.Refused() {
		if err := receipt.Err(); !workflow.CodeOf(err).Info().Final {
			return transitions.Reply{Err: err}
		}
		return transitions.Reply{Receipt: receipt}
	}
	result, err := receipt.Result()
	receipt.Instance, receipt.Version, receipt.Position = result.Instance, result.Version, result.Position
	return transitions.Reply{Receipt: receipt, Err: err}
}

// unanswered is the error for an unknown outcome: repeating the keys returns it.
func unanswered(cause error) error {
	return &workflow.Error{Code: workflow.Unavailable, Message: "the server gave no answer; ask again with the same keys", Cause: cause}
}
