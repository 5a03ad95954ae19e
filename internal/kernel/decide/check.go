package decide

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// maxYear bounds times to what PostgreSQL and JSON can represent.
const maxYear = 9999

func invalid(format string, args ...any) *workflow.Error {
	return workflow.Errorf(workflow.InvalidRequest, format, args...)
}

// CheckCommand refuses what cannot be stored or has no meaning. It does not check the payload or the workflow.
func CheckCommand(c transitions.Command) error {
	if err := transitions.CheckKey(c.Key); err != nil {
		return err
	}
	if c.Scope != "" {
		if err := transitions.CheckScope(c.Scope); err != nil {
			return err
		}
	}
	if err := transitions.CheckTenant(c.Tenant); err != nil {
		return err
	}
	for _, text := range [...]struct {
		name, value string
		limit       int
	}{
		{"actor", c.Actor, transitions.MaxActor}, {"proof of the actor", c.Proof, transitions.MaxProof},
		{"id of the credential", c.Credential.Key, transitions.MaxProof}, {"id of the credential", c.Credential.Ticket, transitions.MaxProof},
		{"reason", c.Reason, transitions.MaxReason}, {"business key", c.BusinessKey, workflow.MaxBusinessKey},
	} {
		if problem := transitions.TextProblem(text.value, text.limit); problem != "" {
			return invalid("the %s %s", text.name, problem)
		}
	}
	happened := c.HappenedAt.UTC()
	switch {
	case c.Instance != uuid.Nil && c.BusinessKey != "":
		return invalid("give the instance or the business key, not both")
	case c.BusinessKey != "" && c.Workflow == "":
		return invalid("a business key needs its workflow")
	case c.Transition == "":
		return invalid("the transition is missing")
	case c.IfVersion < 0:
		return invalid("the expected version is negative")
	case c.NotBefore.UTC().Year() > maxYear:
		return invalid("the command is for after the year %d", maxYear)
	case !c.HappenedAt.IsZero() && (happened.Year() <= 1 || happened.Year() > maxYear):
		return invalid("the command has happened at a time that cannot be stored")
	case !c.HappenedAt.IsZero() && !c.NotBefore.IsZero():
		return invalid("what has happened already cannot be decided later")
	case c.Replay < 0 || c.Tombstone < 0:
		return invalid("the time for which the key is to be good is negative")
	case len(c.Payload) > transitions.MaxPayload:
		return workflow.Errorf(workflow.TooLarge, "the payload is larger than %d bytes", transitions.MaxPayload)
	}
	return nil
}

// CheckKeep refuses, as InvalidRequest, retention periods longer than the workflow allows. h are the workflow's periods, resolved.
func CheckKeep(c transitions.Command, h workflow.Horizons) error {
	for _, one := range []struct {
		what        string
		asked, most time.Duration
	}{{"the answer can be replayed", c.Replay, h.MaxReplay}, {"the tombstone can stay", c.Tombstone, h.MaxTombstone}} {
		if one.asked > one.most {
			return invalid("in workflow %q %s for %d seconds (%s) at most", c.Workflow, one.what, one.most/time.Second, one.most)
		}
	}
	return nil
}

// checkReserved refuses names that only Pawl itself may use.
func checkReserved(c transitions.Command) error {
	if prefix := transitions.ReservedPrefix(c.Scope); prefix != "" {
		return workflow.Errorf(workflow.ScopeInvalid, "scopes that begin with %q are Pawl's own", prefix)
	}
	return CheckActor(c.Actor)
}

// CheckActor refuses, as InvalidRequest, an actor that cannot be stored or is reserved for Pawl.
func CheckActor(actor string) error {
	if prefix := transitions.ReservedPrefix(actor); prefix != "" {
		return invalid("actors that begin with %q are Pawl's own", prefix)
	}
	if problem := transitions.TextProblem(actor, transitions.MaxActor); problem != "" {
		return invalid("the actor %s", problem)
	}
	return nil
}
