package api

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// moment is when an instance is to be shown: now, or in the past at a version
// or, with version 0, at a time.
type moment struct {
	past    bool
	version int64
	at      time.Time
}

// momentOf reads the query of a request for an instance.
func momentOf(r *http.Request) (moment, error) {
	q, err := queryOf(r, "version", "at")
	if err != nil {
		return moment{}, err
	}
	_, byVersion := q["version"]
	at, byTime := q["at"]
	m := moment{past: byVersion || byTime}
	switch {
	case byVersion && byTime:
		return m, workflow.Errorf(workflow.InvalidRequest, "the past is asked for by version or by time, not by both")
	case byVersion:
		m.version, err = q.integer("version", 0, 1, maxPosition)
	case byTime:
		if m.at, err = time.Parse(time.RFC3339Nano, at); err != nil {
			err = errNoTime("at")
		}
	}
	return m, err
}

// sendPast shows an instance as it was. There is no ETag: what is shown can only
// change by being erased, and who has a copy of that should not be told to keep
// it.
func (a *API) sendPast(w http.ResponseWriter, r *http.Request, c Caller, id uuid.UUID, m moment) error {
	var then inspect.Past
	var err error
	if m.version > 0 {
		then, err = a.engine.InstanceAt(r.Context(), c.Tenant, id, m.version)
	} else {
		then, err = a.engine.InstanceAsOf(r.Context(), c.Tenant, id, m.at)
	}
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, pastInstanceOf(&then))
}
