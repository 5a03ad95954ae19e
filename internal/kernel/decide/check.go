package decide

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// maxYear bounds times to what every format says, PostgreSQL's and JSON's.
const maxYear = 9999

// CheckCommand refuses what cannot be stored or means nothing. It does not look at the
// payload or the workflow.
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
	if err := actorProblem(c.Actor); err != nil {
		return err
	}
	if problem := transitions.TextProblem(c.Proof, transitions.MaxProof); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the proof of the actor %s", problem)
	}
	for _, id := range []string{c.Credential.Key, c.Credential.Ticket} {
		if problem := transitions.TextProblem(id, transitions.MaxProof); problem != "" {
			return workflow.Errorf(workflow.InvalidRequest, "the id of the credential %s", problem)
		}
	}
	if problem := transitions.TextProblem(c.Reason, transitions.MaxReason); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the reason %s", problem)
	}
	if problem := transitions.TextProblem(c.BusinessKey, workflow.MaxBusinessKey); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the business key %s", problem)
	}
	if c.Instance != uuid.Nil && c.BusinessKey != "" {
		return workflow.Errorf(workflow.InvalidRequest, "give the instance or the business key, not both")
	}
	if c.BusinessKey != "" && c.Workflow == "" {
		return workflow.Errorf(workflow.InvalidRequest, "a business key needs its workflow")
	}
	if c.Transition == "" {
		return workflow.Errorf(workflow.InvalidRequest, "the transition is missing")
	}
	if c.IfVersion < 0 {
		return workflow.Errorf(workflow.InvalidRequest, "the expected version is negative")
	}
	if c.NotBefore.UTC().Year() > maxYear {
		return workflow.Errorf(workflow.InvalidRequest, "the command is for after the year %d", maxYear)
	}
	if at := c.HappenedAt.UTC(); !c.HappenedAt.IsZero() && (at.Year() <= 1 || at.Year() > maxYear) {
		return workflow.Errorf(workflow.InvalidRequest, "the command has happened at a time that cannot be stored")
	}
	if !c.HappenedAt.IsZero() && !c.NotBefore.IsZero() {
		return workflow.Errorf(workflow.InvalidRequest, "what has happened already cannot be decided later")
	}
	if c.Replay < 0 || c.Tombstone < 0 {
		return workflow.Errorf(workflow.InvalidRequest, "the time for which the key is to be good is negative")
	}
	if len(c.Payload) > transitions.MaxPayload {
		return workflow.Errorf(workflow.TooLarge, "the payload is larger than %d bytes", transitions.MaxPayload)
	}
	return nil
}

// CheckKeep refuses, as InvalidRequest, a command that wants its key to be good
// for longer than the workflow allows. h are the workflow's horizons, resolved.
func CheckKeep(c transitions.Command, h workflow.Horizons) error {
	for _, one := range []struct {
		what        string
		asked, most time.Duration
	}{{"the answer can be replayed", c.Replay, h.MaxReplay}, {"the tombstone can stay", c.Tombstone, h.MaxTombstone}} {
		if one.asked > one.most {
			return workflow.Errorf(workflow.InvalidRequest, "in workflow %q %s for %d seconds (%s) at most",
				c.Workflow, one.what, one.most/time.Second, one.most)
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

// CheckActor refuses, as InvalidRequest, an actor that cannot be stored, or that only Pawl itself may be.
func CheckActor(actor string) error {
	if prefix := transitions.ReservedPrefix(actor); prefix != "" {
		return workflow.Errorf(workflow.InvalidRequest, "actors that begin with %q are Pawl's own", prefix)
	}
	return actorProblem(actor)
}

func actorProblem(actor string) error {
	if problem := transitions.TextProblem(actor, transitions.MaxActor); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the actor %s", problem)
	}
	return nil
}
