package api

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// command submits the command that the address names: one that creates an instance of a
// workflow, or one on an instance, by its id or its business key.
func (a *API) command(w http.ResponseWriter, r *request) (err error) {
	cmd := transitions.Command{Transition: r.text("transition")}
	if r.byKey() {
		cmd.Workflow = r.text("workflow")
	} else {
		cmd.Instance = r.id("id")
	}
	if r.route.param("business_key") != nil {
		cmd.BusinessKey = r.text("business_key")
	}
	dryRun := r.boolean("dry_run")
	if err := named(r.Request, &cmd, dryRun); err != nil {
		return err
	}
	if err := termsOf(r.Request, &cmd); err != nil {
		return err
	}
	if cmd.Payload, err = a.body(w, r); err != nil {
		return err
	}
	if err := a.by(r, &cmd); err != nil {
		return err
	}
	if err := a.admit(w, cmd.Tenant, actorKey(&r.caller), 1); err != nil {
		return err
	}
	if dryRun {
		return a.dryRun(w, r, cmd)
	}
	receipt, err := a.engine.Submit(r.Context(), cmd)
	if err != nil {
		return err
	}
	a.settle(w, r, &receipt)
	if receipt, err = forCaller(&r.caller, cmd.Workflow, receipt); err != nil {
		return err
	}
	return r.sendReceipt(w, receipt)
}

// named reads the headers that name a command. A dry run needs no key: nothing is
// claimed.
func named(r *http.Request, cmd *transitions.Command, dryRun bool) error {
	key, given, err := keyHeader(r, headerKey, workflow.KeyInvalid)
	if err != nil {
		return err
	}
	if given || !dryRun {
		if err := transitions.CheckKey(key); err != nil {
			return err
		}
	}
	scope, given, err := keyHeader(r, headerScope, workflow.ScopeInvalid)
	if err != nil {
		return err
	}
	if given {
		if err := transitions.CheckScope(scope); err != nil {
			return err
		}
	}
	cmd.Key, cmd.Scope = key, scope
	return nil
}

func (a *API) dryRun(w http.ResponseWriter, r *request, cmd transitions.Command) error {
	receipt, err := a.engine.DryRun(r.Context(), cmd)
	if err != nil {
		return err
	}
	if receipt, err = forCaller(&r.caller, cmd.Workflow, receipt); err != nil {
		return err
	}
	body, err := bodyOf(receipt)
	if err != nil {
		return err
	}
	w.Header().Set(headerDryRun, "true")
	send(w, receipt.Status, mediaOf(receipt), body)
	return nil
}

// bodyOf returns the body of the answer: the stored bytes, or the status of a command in flight.
func bodyOf(receipt transitions.Receipt) ([]byte, error) {
	if receipt.InFlight() {
		return render(statusOf(receipt.Record))
	}
	return receipt.Body, nil
}

// sendReceipt answers with the final result of a command, or with its status.
func (r *request) sendReceipt(w http.ResponseWriter, receipt transitions.Receipt) error {
	body, err := bodyOf(receipt)
	if err != nil {
		return err
	}
	h := w.Header()
	if receipt.Replayed {
		h.Set(headerReplayed, "true")
	}
	if receipt.Status == http.StatusCreated {
		h.Set(headerLocation, r.prefix+"/v1/instances/"+receipt.Instance.String())
	}
	if receipt.Version > 0 {
		h.Set(headerETag, `"`+strconv.FormatInt(receipt.Version, 10)+`"`)
	}
	if receipt.Position > 0 {
		h.Set(headerPosition, strconv.FormatInt(receipt.Position, 10))
	}
	if receipt.InFlight() {
		r.pointTo(h, receipt.Record)
	}
	send(w, receipt.Status, mediaOf(receipt), body)
	return nil
}

func mediaOf(receipt transitions.Receipt) string {
	if receipt.Refused() {
		return mediaProblem
	}
	return mediaJSON
}

// settle waits for the results of commands in flight, for as long as the caller requests ("Prefer: wait=N"), and replaces their receipts. A
// command that is still in flight after that, or when the node stops, keeps its current status; when the credential ends, the status with
// which it was accepted. All of them were accepted before, so failures here are not failures of the commands.
func (a *API) settle(w http.ResponseWriter, r *request, receipts ...*transitions.Receipt) {
	open := inFlight(receipts)
	if len(open) == 0 {
		return
	}
	var applied []string
	if wait := preferredWait(r.with(headerPrefer), a.cfg.Limits.Wait); wait > 0 && a.waitForEnds(r, wait, open) {
		applied = append(applied, "wait")
	}
	if len(inFlight(open)) > 0 && prefersAsync(r.Request) {
		applied = append(applied, "respond-async")
	}
	if applied != nil {
		w.Header().Set(headerApplied, strings.Join(applied, ", "))
	}
}

// waitForEnds reports whether it waited: not on a node that stops.
func (a *API) waitForEnds(r *request, wait time.Duration, open []*transitions.Receipt) bool {
	ctx, t := r.term()
	defer t.done()
	tenant := r.tenant()
	limited, done, err := a.streams.Wait(ctx, wait)
	if err != nil {
		return false
	}
	defer done()
	var all sync.WaitGroup
	for _, receipt := range open {
		all.Go(func() {
			final, err := a.engine.Await(limited, transitions.Ref{Tenant: tenant, Scope: receipt.Record.Scope, Key: receipt.Record.Key})
			switch {
			case err == nil:
				final.Replayed = receipt.Replayed
				*receipt = final
			case limited.Err() == nil:
				_ = a.judged(ctx, err)
			}
		})
	}
	all.Wait()
	for _, receipt := range inFlight(open) {
		if ctx.Err() != nil {
			break // there is nobody to tell, or nobody who may know
		}
		record, err := a.engine.Read().Command(ctx, transitions.Ref{Tenant: tenant, Scope: receipt.Record.Scope, Key: receipt.Record.Key})
		if err != nil {
			_ = a.judged(ctx, err)
			continue
		}
		now := record.Receipt()
		now.Replayed = receipt.Replayed
		*receipt = now
	}
	return true
}

func inFlight(receipts []*transitions.Receipt) []*transitions.Receipt {
	var open []*transitions.Receipt
	for _, receipt := range receipts {
		if receipt.InFlight() {
			open = append(open, receipt)
		}
	}
	return open
}

// forCaller returns an answer as its caller may see it. The answer to a creation whose business key is taken shows another command's
// instance. A caller who may not read that learns only that it exists. The stored answer stays as it is.
func forCaller(c *Caller, name string, receipt transitions.Receipt) (transitions.Receipt, error) {
	if receipt.Version > 0 || receipt.InFlight() || receipt.Status != http.StatusOK && receipt.Status != http.StatusConflict {
		return receipt, nil
	}
	result, err := receipt.Result()
	switch {
	case err == nil && result.Existing:
		if c.May(Read, auth.Target{Workflow: result.Workflow, Instance: result.Instance}) {
			return receipt, nil
		}
		receipt.Body, err = render(wire.Existing{Workflow: result.Workflow, Transition: result.Transition, Existing: true})
	case workflow.CodeOf(err) == workflow.AlreadyExists:
		if c.May(Read, auth.Target{Workflow: name, Instance: receipt.Instance}) {
			return receipt, nil
		}
		receipt.Body, err = transitions.ProblemOf(workflow.Errorf(workflow.AlreadyExists, "the business key belongs to another instance")).JSON(), nil
	default:
		return receipt, nil
	}
	receipt.Instance = uuid.Nil
	return receipt, err
}
