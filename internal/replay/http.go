package replay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	bulkItems  = 1000      // commands of one request, at most
	bulkAnswer = 256 << 20 // bytes of an answer, at most
)

// HTTP is the server at an address like "http://localhost:8080" as a target: its
// POST /v1/commands. client nil is one of its own, with room for the connections
// of many callers.
//
// The commands of one call must be of one tenant; an empty one is left to the
// server. Where there is no answer, or none that is to be had now, the replies
// have an error that may be retried, and no later part of the call is sent.
func HTTP(baseURL string, client *http.Client) Target {
	if client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 64
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
	replies := make([]transitions.Reply, 0, len(cs))
	for begin := 0; begin < len(cs); begin += bulkItems {
		part := cs[begin:min(begin+bulkItems, len(cs))]
		got, err := s.post(ctx, part)
		if err != nil {
			for range cs[begin:] {
				replies = append(replies, transitions.Reply{Err: err})
			}
			break
		}
		replies = append(replies, got...)
	}
	return replies
}

// post sends one request.
func (s *server) post(ctx context.Context, cs []transitions.Command) ([]transitions.Reply, error) {
	items := make([]api.BulkCommand, len(cs))
	for i, c := range cs {
		items[i] = itemOf(c)
	}
	body, err := json.Marshal(items)
	if err != nil {
		return nil, &workflow.Error{Code: workflow.InvalidRequest, Message: "the commands cannot be encoded", Cause: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, bytes.NewReader(body))
	if err != nil {
		return nil, &workflow.Error{Code: workflow.InvalidRequest, Message: "the address is not one", Cause: err}
	}
	request.Header.Set("Content-Type", "application/json")
	if cs[0].Tenant != "" {
		request.Header.Set("Pawl-Tenant", cs[0].Tenant)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, unanswered(err)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, bulkAnswer))
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, unanswered(err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, problemOf(response.StatusCode, answer)
	}
	var results []api.BulkResult
	if err := json.Unmarshal(answer, &results); err != nil {
		return nil, unanswered(err)
	}
	if len(results) != len(cs) {
		return nil, unanswered(fmt.Errorf("%d answers to %d commands", len(results), len(cs)))
	}
	replies := make([]transitions.Reply, len(cs))
	for i, r := range results {
		replies[i] = replyOf(r)
	}
	return replies, nil
}

func itemOf(c transitions.Command) api.BulkCommand {
	item := api.BulkCommand{Workflow: c.Workflow, Transition: c.Transition, BusinessKey: c.BusinessKey, Key: c.Key, Payload: c.Payload}
	if c.Instance != uuid.Nil {
		item.Instance = c.Instance.String()
	}
	if c.Scope != "" {
		item.Scope = &c.Scope
	}
	if c.IfVersion != 0 {
		item.IfVersion = &c.IfVersion
	}
	return item
}

// replyOf reads one result: what is stored is a receipt, all else an error.
func replyOf(r api.BulkResult) transitions.Reply {
	receipt := transitions.Receipt{Status: r.Status, Replayed: r.Replayed, Body: r.Body}
	if !receipt.Refused() {
		result, err := receipt.Result()
		if err != nil {
			return transitions.Reply{Err: err}
		}
		receipt.Instance, receipt.Version, receipt.Position = result.Instance, result.Version, result.Position
		return transitions.Reply{Receipt: receipt}
	}
	if err := problemOf(r.Status, r.Body); !workflow.CodeOf(err).Info().Final {
		return transitions.Reply{Err: err}
	}
	return transitions.Reply{Receipt: receipt}
}

// problemOf reads a problem document. Where there is none, something else than
// the server answered: a proxy on the way, or nothing of ours is there.
func problemOf(status int, body []byte) error {
	var p transitions.Problem
	if err := json.Unmarshal(body, &p); err == nil && p.Code != "" {
		return p.Err()
	}
	if status < 500 {
		return workflow.Errorf(workflow.NotFound, "HTTP status %d without a problem document: this is not the address of a Pawl server", status)
	}
	return unanswered(fmt.Errorf("HTTP status %d without a problem document", status))
}

// unanswered is an error after which nobody knows whether the commands were
// done; the same keys will tell.
func unanswered(cause error) error {
	return &workflow.Error{Code: workflow.Unavailable, Message: "the server gave no answer; ask again with the same keys", Cause: cause}
}
