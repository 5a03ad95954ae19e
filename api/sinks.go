package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/pawlhq/pawl/api/internal/parse"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// A sink is the installation's, and may get the events of many tenants. An operator
// of a tenant sees the sinks that get this tenant's events, with the numbers of its
// log and its dead letters, and may move its cursor and redrive and skip its dead
// letters. What concerns every tenant (?all_tenants=true, a pause, giving it up) is for an
// [OperatorOfAll]. The same request again does no harm, so none of them needs a
// key.

// SinkMove is where an operator moves a sink's cursor.
type SinkMove struct {
	Position *int64 `json:"position"` // required
	Reason   string `json:"reason,omitempty"`
}

// sinks lists the sinks: GET /v1/ops/sinks.
func (a *API) sinks(w http.ResponseWriter, r *request) error {
	list, err := a.sinksOf(r, r.tenant())
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, SinkList{Sinks: SinksOf(list)})
}

// sink tells how a sink stands, and how far it is: GET /v1/ops/sinks/{sink}.
func (a *API) sink(w http.ResponseWriter, r *request) error {
	f := inspect.CursorFilter{Tenant: r.tenant(), Limit: r.limit()}
	var err error
	if f.After, err = after(r, decodeSinkCursor); err != nil {
		return err
	}
	info, err := a.sinkOf(r, f.Tenant)
	if err != nil {
		return err
	}
	f.Sink = info.Name
	list, more, err := a.engine.SinkCursors(r.Context(), f)
	if err != nil {
		return err
	}
	out := SinkPage{Sink: sinkOf(info), Cursors: CursorsOf(list)}
	if more {
		out.Next = encodeSinkCursor(&list[len(list)-1])
	}
	return sendJSON(w, http.StatusOK, out)
}

// deadLetters lists what a sink has not got: GET /v1/ops/sinks/{sink}/dead.
func (a *API) deadLetters(w http.ResponseWriter, r *request) error {
	f := inspect.DeadFilter{Tenant: r.tenant(), Status: inspect.DeadStatus(r.text("status")), Workflow: r.text("workflow"),
		Type: r.text("type"), Instance: r.id("instance"), BusinessKey: r.text("business_key")}
	p := inspect.DeadPage{Limit: r.limit()}
	var err error
	if p.After, err = after(r, decodeDeadCursor); err != nil {
		return err
	}
	info, err := a.sinkOf(r, f.Tenant)
	if err != nil {
		return err
	}
	f.Sink = info.Name
	list, more, err := a.engine.DeadLetters(r.Context(), f, p)
	if err != nil {
		return err
	}
	out := DeadPage{Dead: DeadLettersOf(list)}
	if more {
		out.Next = encodeDeadCursor(&list[len(list)-1])
	}
	return sendJSON(w, http.StatusOK, out)
}

func (a *API) pauseSink(w http.ResponseWriter, r *request) error {
	return a.stopSink(w, r, func(name, reason string) error {
		return a.engine.PauseSink(r.Context(), name, r.caller.Actor, reason)
	})
}

func (a *API) resumeSink(w http.ResponseWriter, r *request) error {
	return a.stopSink(w, r, func(name, _ string) error { return a.engine.ResumeSink(r.Context(), name) })
}

func (a *API) forgetSink(w http.ResponseWriter, r *request) error {
	return a.stopSink(w, r, func(name, _ string) error { return a.engine.ForgetSink(r.Context(), name) })
}

// stopSink reads the body of what concerns all tenants: a pause, its end, and that
// a sink is given up.
func (a *API) stopSink(w http.ResponseWriter, r *request, do func(name, reason string) error) error {
	in, err := readJSON[Reason](a, w, r)
	if err != nil {
		return err
	}
	if err := do(r.text("sink"), in.Reason); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) moveSink(w http.ResponseWriter, r *request) error {
	in, err := readJSON[SinkMove](a, w, r)
	if err != nil {
		return err
	}
	if in.Position == nil {
		return workflow.Errorf(workflow.InvalidRequest, "the body has no position to move to")
	}
	info, err := a.sinkOf(r, r.tenant())
	if err != nil {
		return err
	}
	if err := a.engine.MoveSink(r.Context(), info.Name, r.tenant(), *in.Position, r.caller.Actor, in.Reason); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) redrive(w http.ResponseWriter, r *request) error {
	return a.changeDead(w, r, a.engine.Redrive)
}

func (a *API) skipDead(w http.ResponseWriter, r *request) error {
	return a.changeDead(w, r, a.engine.SkipDead)
}

// changeDead does something to the dead letters that the body selects.
func (a *API) changeDead(w http.ResponseWriter, r *request,
	do func(ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error)) error {
	in, err := readJSON[DeadSelection](a, w, r)
	if err != nil {
		return err
	}
	f, err := in.filter(r)
	if err != nil {
		return err
	}
	info, err := a.sinkOf(r, f.Tenant)
	if err != nil {
		return err
	}
	f.Sink = info.Name
	n, err := do(r.Context(), f, r.caller.Actor, in.Reason)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, DeadChange{Changed: n})
}

// sinkOf finds the sink that the path names, among those that get the tenant's
// events.
func (a *API) sinkOf(r *request, tenant string) (inspect.SinkInfo, error) {
	name := r.text("sink")
	list, err := a.sinksOf(r, tenant)
	if err != nil {
		return inspect.SinkInfo{}, err
	}
	i := slices.IndexFunc(list, func(s inspect.SinkInfo) bool { return s.Name == name })
	if i < 0 {
		return inspect.SinkInfo{}, workflow.Errorf(workflow.NotFound, "there is no sink %q", parse.Shown(name))
	}
	return list[i], nil
}

// sinksOf lists sinks, without what is not for an operator of one tenant: who
// else gets their events, and what became of these.
func (a *API) sinksOf(r *request, tenant string) ([]inspect.SinkInfo, error) {
	list, err := a.engine.Sinks(r.Context(), tenant)
	if err != nil || r.caller.may(OperateAll) == nil {
		return list, err
	}
	for i := range list {
		s := &list[i]
		if s.Tenants != nil {
			s.Tenants = []string{tenant}
		}
		s.Failure, s.Delivered, s.Failed, s.Parked = "", 0, 0, 0
	}
	return list, nil
}
