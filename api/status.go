package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// commandStatus answers with the status of a command: GET /v1/commands/{scope}/{key...}, as JSON or as an event stream. With
// "If-None-Match" and "Prefer: wait=N" it answers when the status has changed.
func (a *API) commandStatus(w http.ResponseWriter, r *request) error {
	ref := commandRef(r)
	if err := a.mayAbout(r.Context(), &r.caller, r.route.Grant, ref); err != nil {
		return err
	}
	media, err := r.accepted(func(g Grant) error { return a.mayAbout(r.Context(), &r.caller, g, ref) })
	if err != nil {
		return err
	}
	if media == mediaEventStream && r.Method != http.MethodHead {
		seen, err := lastRevision(r.with(headerLastEventID))
		if err != nil {
			return err
		}
		t := r.bounded()
		defer t.done()
		return a.streams.Status(w, r.Request, ref, seen, r.holder)
	}
	record, err := a.changedStatus(w, r, ref)
	if err != nil {
		return err
	}
	status := statusOf(&record)
	if r.operates(&record) {
		status = operatedStatusOf(&record)
	}
	body, err := render(status)
	if err != nil {
		return err
	}
	sendTagged(w, r.with(headerNoneMatch), r.statusTag(&record), body)
	return nil
}

// changedStatus returns a command as it stands. A caller who knows that already
// and prefers to wait gets it when it has changed, or the time is over, or the
// node stops.
func (a *API) changedStatus(w http.ResponseWriter, r *request, ref transitions.Ref) (transitions.Record, error) {
	record, err := a.engine.Read().Command(r.Context(), ref)
	wait := preferredWait(r.with(headerPrefer), a.cfg.Limits.Wait)
	if err != nil || wait == 0 || !record.InFlight() || !notModified(r.Request, r.statusTag(&record)) {
		return record, err
	}
	request := record.Request
	record, waited, err := a.streams.Changed(r.Context(), ref, record, wait)
	if record.InFlight() {
		record.Request = request // which never changes
	}
	if waited && err == nil {
		err = r.stillHolds(w.Header())
		w.Header().Set(headerApplied, "wait")
	}
	return record, err
}

// cancelCommand asks a command in flight to stop: DELETE
// /v1/commands/{scope}/{key...}. It answers with the status, 202 while the
// command has not ended. A caller who may not read the command learns only its status.
func (a *API) cancelCommand(w http.ResponseWriter, r *request) error {
	ref := commandRef(r)
	if err := a.mayAbout(r.Context(), &r.caller, r.route.Grant, ref); err != nil {
		return err
	}
	if err := a.mayCancel(r.Context(), ref, &r.caller); err != nil {
		return err
	}
	record, err := a.engine.Cancel(r.Context(), ref, r.caller.Actor)
	if err != nil {
		return err
	}
	status, reads := statusOf(&record), r.caller.May(Read, aboutRecord(&record))
	if !reads {
		status = wire.CommandStatus{Scope: status.Scope, Key: status.Key, Status: status.Status, Workflow: status.Workflow,
			Transition: status.Transition, CreatedAt: status.CreatedAt, UpdatedAt: status.UpdatedAt}
	}
	body, err := render(status)
	if err != nil {
		return err
	}
	if record.InFlight() {
		r.pointTo(w.Header(), &record)
		send(w, http.StatusAccepted, mediaJSON, body)
		return nil
	}
	if reads {
		w.Header().Set(headerETag, r.statusTag(&record))
	}
	send(w, http.StatusOK, mediaJSON, body)
	return nil
}

// commandRef returns the command that the path names.
func commandRef(r *request) transitions.Ref {
	scope, _ := r.value("scope", Scope)
	key, _ := r.value("key", Key)
	return transitions.Ref{Tenant: r.tenant(), Scope: scope, Key: key}
}

// commandPath is the address of a command. A scope that is "/" alone has none:
// net/http takes it for the end of a path.
func commandPath(scope, key string) string {
	return "/v1/commands/" + pathSegment(scope) + "/" + pathSegment(key)
}

// pathSegment escapes a text as one segment of a path, including "." and "..".
func pathSegment(s string) string {
	switch s {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	return url.PathEscape(s)
}

// operates reports whether the caller sees of a command what operators see.
func (r *request) operates(record *transitions.Record) bool {
	return r.caller.May(Operate, aboutRecord(record))
}

// statusTag returns the entity tag of a command's status, of which an operator sees more than others.
func (r *request) statusTag(record *transitions.Record) string {
	seen := "status"
	if r.operates(record) {
		seen = "operated status"
	}
	return `"` + strconv.Itoa(record.Revision) + "." + hashOf(r.tenant(), record.Scope, record.Key, seen) + `"`
}

// pointTo sets the headers of an answer to a command in flight: the address of its status, the tag that it has there for this caller,
// and when to ask again.
func (r *request) pointTo(h http.Header, record *transitions.Record) {
	h.Set(headerLocation, r.prefix+commandPath(record.Scope, record.Key))
	h.Set(headerETag, r.statusTag(record))
	h.Set(headerRetryAfter, seconds(lookAgain(record, time.Now())))
}

// longestPause bounds Retry-After of a command in flight.
const longestPause = time.Minute

// lookAgain is how long the status of a command in flight will probably stay as
// it is.
func lookAgain(r *transitions.Record, now time.Time) time.Duration {
	switch {
	case r.Stuck != "":
		return longestPause
	case r.RunAt.IsZero():
		return time.Second
	default:
		return min(r.RunAt.Sub(now), longestPause)
	}
}

func statusOf(r *transitions.Record) wire.CommandStatus {
	s := wire.CommandStatus{
		Scope: r.Scope, Key: r.Key, Status: r.Status, Workflow: r.Workflow, Transition: r.Transition,
		Instance: r.Instance, Version: r.Version, Position: max(r.Position, 0), Code: r.Code,
		Reason: askedWith(r).Reason, Attempt: r.Attempt, Failures: r.Failures, Failure: r.Failure, Progress: r.Progress, RunAt: r.RunAt.UTC(),
		LockedUntil: r.LockedUntil.UTC(), CancelledBy: r.CancelledBy, Stuck: r.Stuck,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(),
	}
	switch r.Status {
	case transitions.Succeeded:
		s.Result = transitions.WithPosition(r.Body, s.Position)
	case transitions.FailedFinal:
		s.Problem = transitions.WithPosition(r.Body, s.Position)
	}
	return s
}

// shownOfRequest is what a status shows of the request of a command in flight.
type shownOfRequest struct {
	Reason string `json:"reason"`
	Proof  string `json:"proof"`
}

// askedWith returns it, as far as the record has it: a command that is watched has no request.
func askedWith(r *transitions.Record) shownOfRequest {
	in := shownOfRequest{r.Reason, r.Proof}
	if r.InFlight() && len(r.Request) > 0 {
		_ = json.Unmarshal(r.Request, &in, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) // else none
	}
	return in
}

// operatedStatusOf is statusOf for operators, with the names of nodes, the actor and the proof.
func operatedStatusOf(r *transitions.Record) wire.CommandStatus {
	s := statusOf(r)
	s.Actor, s.Proof = r.Actor, askedWith(r).Proof
	s.ClaimedBy, s.ClaimedAt = r.ClaimedBy, r.ClaimedAt.UTC()
	return s
}

// mayCancel permits cancelling a command to its sender, to callers that could have sent it, and to operators; a command that waits for an
// operator only to operators.
func (a *API) mayCancel(ctx context.Context, ref transitions.Ref, c *Caller) error {
	record, err := a.engine.Read().Command(ctx, ref)
	switch {
	case c.May(Operate, aboutRecord(&record)):
		return nil // if there is none, the engine says so
	case err != nil:
		return err
	case record.Stuck != "":
		return workflow.Errorf(workflow.Forbidden, "the command waits for an operator; that takes the grant %q", Operate)
	case record.Actor == c.Actor:
		return nil
	}
	steps, err := a.stepsFor(ctx, ref.Tenant, &record)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(steps, func(s *workflow.Step) bool { return !s.Internal && transitions.HasRole(c.Roles, s.Roles...) }) {
		return nil
	}
	return workflow.Errorf(workflow.RoleRequired, "to cancel a command, be its sender, be allowed to send it, or have the grant %q", Operate)
}

// stepsFor are the steps that a command may be about, in the version of its workflow that decides it: that of its
// instance, or the newest where it is to create one.
func (a *API) stepsFor(ctx context.Context, tenant string, r *transitions.Record) ([]*workflow.Step, error) {
	inst, err := a.engine.Read().Instance(ctx, tenant, r.Instance)
	if err != nil && workflow.CodeOf(err) != workflow.InstanceNotFound {
		return nil, err
	}
	w, err := a.engine.Read().Workflow(r.Workflow, inst.Definition)
	if err != nil {
		return nil, err
	}
	start, moving := w.Creating(r.Transition), w.Moving(r.Transition)
	if start != nil && (inst.Version == 0 || len(moving) == 0) {
		return []*workflow.Step{start}, nil
	}
	return moving, nil
}

// lastRevision is the id of the last event that the caller has, -1 for none.
func lastRevision(r *http.Request) (int, error) {
	id, err := single(r, headerLastEventID)
	if err != nil || id == "" {
		return -1, err
	}
	n, err := strconv.ParseUint(id, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != id {
		return 0, workflow.Errorf(workflow.InvalidRequest, "Last-Event-ID is not the id of a status")
	}
	return int(n), nil
}
