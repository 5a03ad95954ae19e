package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// OpenLook is a pass over the open instances of a version, of all tenants: kind by kind, each in the order of the last transitions.
type OpenLook struct {
	Workflow   string
	Definition int
	Before     time.Time // only those that have begun by then; zero: all
	Scope      string    // only those without a command there whose key is the instance; "": all
	Limit      int       // how many are read at once

	At    OpenPlace
	kinds []Kind // that are left; nil: they have to be listed
}

// OpenPlace is the position of a pass: after an instance.
type OpenPlace struct {
	Begun  bool           `json:"begun,omitempty"` // else it is at the beginning
	Tenant string         `json:"tenant,omitempty"`
	State  workflow.State `json:"state,omitempty"`
	At     time.Time      `json:"at,omitzero"` // of its last transition
	ID     uuid.UUID      `json:"id,omitzero"`
}

// Again restarts a pass.
func (l *OpenLook) Again() { l.At, l.kinds = OpenPlace{}, nil }

// The subquery of one row is a probe of the key for each; an EXISTS may be made to read the whole scope.
var openPageSQL = `SELECT ` + instanceSelect + `, ($8::timestamptz IS NULL OR i.created_at <= $8) AND (SELECT true FROM {pawl}.command c
	WHERE c.tenant = $1 AND c.scope = $9 AND c.key = i.id::text LIMIT 1) IS NULL
FROM {pawl}.instance i WHERE i.tenant = $1 AND i.workflow = $2 AND i.definition = $3 AND i.state = $4 AND i.open = true
	AND (i.updated_at, i.id) > ($5::timestamptz, $6::uuid) ORDER BY i.updated_at, i.id LIMIT $7`

// OpenInstances continues a pass with up to Limit instances. An empty result means that the pass is complete; at the start of a pass it
// means that no such instance existed at one moment.
func (q *Reader) OpenInstances(ctx context.Context, look *OpenLook) (found []transitions.Instance, err error) {
	err = q.listing(ctx, "instances", func(l *lister) error {
		if look.kinds == nil {
			if err := l.list(ctx, look); err != nil {
				return err
			}
		}
		for len(look.kinds) > 0 && len(found) == 0 {
			if found, err = l.openPage(ctx, look); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// list finds the remaining kinds of a pass.
func (l *lister) list(ctx context.Context, look *OpenLook) error {
	open := true
	kinds, _, err := l.kinds(ctx, &inspect.CountFilter{Workflow: look.Workflow, Definition: look.Definition, Open: &open}, everyKind)
	look.kinds = slices.DeleteFunc(kinds, func(k Kind) bool {
		return look.At.Begun && (k.Tenant < look.At.Tenant || k.Tenant == look.At.Tenant && k.State < look.At.State)
	})
	return err
}

// openPage reads the next page of the current kind.
func (l *lister) openPage(ctx context.Context, look *OpenLook) (list []transitions.Instance, err error) {
	k, at := look.kinds[0], &look.At
	if !at.Begun || at.Tenant != k.Tenant || at.State != k.State {
		*at = OpenPlace{Begun: true, Tenant: k.Tenant, State: k.State}
	}
	found, err := ask(ctx, l.tx, l.in(openPageSQL), k.Tenant, k.Workflow, k.Definition, string(k.State), at.At, at.ID, look.Limit,
		orNull(look.Before), look.Scope)
	if err != nil {
		return nil, err
	}
	read := 0
	_, err = pgx.CollectRows(found, rowBy(func(row *rows.Row) (none struct{}, err error) {
		i, err := mustInstance(row, k.Tenant)
		if err != nil {
			return none, err
		}
		read++
		if at.At, at.ID = i.UpdatedAt, i.ID; row.Bool() {
			list = append(list, i)
		}
		return none, nil
	}))
	if read < look.Limit {
		look.kinds = look.kinds[1:]
	}
	return list, err
}
