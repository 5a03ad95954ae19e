package api

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// APIKeys keeps API keys; an [apikey.Verifier] does. A tenant "" is any.
type APIKeys interface {
	Create(ctx context.Context, k apikey.Key) (made apikey.Key, text string, err error)
	Get(ctx context.Context, tenant, id string) (apikey.Key, error)
	List(ctx context.Context, f apikey.Filter) (page []apikey.Key, more bool, err error)
	Rotate(ctx context.Context, tenant, id string, r apikey.Rotation) (k apikey.Key, text string, err error)
	Revoke(ctx context.Context, tenant, id, by string) (apikey.Key, error)
}

// NewAPIKey is a key that is to be made.
type NewAPIKey struct {
	Name      string    `json:"name"` // of a tenant's keys that are not revoked one has it
	Tenant    string    `json:"tenant,omitempty"`
	Actor     string    `json:"actor,omitempty"`
	Roles     []string  `json:"roles,omitempty"`
	Grants    []string  `json:"grants"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// APIKey is a key without its text.
type APIKey struct {
	ID         string    `json:"id"`
	Tenant     string    `json:"tenant"`
	Name       string    `json:"name"`
	Actor      string    `json:"actor"`
	Roles      []string  `json:"roles"`
	Grants     []string  `json:"grants"`
	CreatedAt  time.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by"`
	RotatedAt  time.Time `json:"rotated_at,omitzero"`
	RotatedBy  string    `json:"rotated_by,omitempty"`
	FormerEnds time.Time `json:"former_ends,omitzero"` // until when the text before the last rotation is good too
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	RevokedAt  time.Time `json:"revoked_at,omitzero"`
	RevokedBy  string    `json:"revoked_by,omitempty"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"` // to the minute, and a minute late
}

// APIKeyText is a key with its text, which is shown once.
type APIKeyText struct {
	APIKey
	Key string `json:"key"`
}

// APIKeyPage is a page of keys.
type APIKeyPage struct {
	Keys []APIKey `json:"keys"`
	Next string   `json:"next,omitempty"` // the cursor of the next page
}

// APIKeyRotation is how a key gets a new text.
type APIKeyRotation struct {
	Seconds *int64 `json:"seconds,omitempty"` // for how long the text that it has is good too; a day
	Lost    bool   `json:"lost,omitempty"`    // the text is lost: it ends at once, and the text before it stays valid
}

// DefaultOverlap is how long the former text of a rotated key stays valid by default.
const DefaultOverlap = 24 * time.Hour

// APIKeyOf is how REST shows a key.
func APIKeyOf(k *apikey.Key) APIKey {
	return APIKey{ID: k.ID, Tenant: k.Tenant, Name: k.Name, Actor: k.Actor, Roles: append([]string{}, k.Roles...),
		Grants:    each(k.Grants, func(g *auth.Grant) string { return g.String() }),
		CreatedAt: k.CreatedAt, CreatedBy: k.CreatedBy, RotatedAt: k.RotatedAt, RotatedBy: k.RotatedBy,
		FormerEnds: k.FormerEnds, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt, RevokedBy: k.RevokedBy, LastUsedAt: k.LastUsedAt}
}

// apiKeys lists keys.
func (a *API) apiKeys(r *request) (out APIKeyPage, err error) {
	if a.cfg.Keys == nil {
		return out, a.nothingHere()
	}
	f := apikey.Filter{Tenant: r.tenant(), Limit: r.limit()}
	if f.After, err = byMaking.after(r); err != nil {
		return out, err
	}
	list, more, err := a.cfg.Keys.List(r.Context(), f)
	return APIKeyPage{Keys: each(list, APIKeyOf), Next: byMaking.next(list, more)}, err
}

// apiKey shows one of them.
func (a *API) apiKey(r *request) (APIKey, error) {
	k, err := a.keyOf(r)
	return APIKeyOf(&k), err
}

// keyOf is the key that the path names.
func (a *API) keyOf(r *request) (apikey.Key, error) {
	if a.cfg.Keys == nil {
		return apikey.Key{}, a.nothingHere()
	}
	return a.cfg.Keys.Get(r.Context(), r.tenant(), r.text("api_key"))
}

// createAPIKey makes a key that can do no more than its maker.
func (a *API) createAPIKey(w http.ResponseWriter, r *request) error {
	if a.cfg.Keys == nil {
		return a.nothingHere()
	}
	in, err := readJSON[NewAPIKey](a, w, r)
	if err != nil {
		return err
	}
	k, err := in.key(&r.caller)
	if err != nil {
		return err
	}
	if err := k.Check(time.Now()); err != nil {
		return err
	}
	if err := mayGive(&r.caller, &k); err != nil {
		return err
	}
	made, text, err := a.cfg.Keys.Create(r.Context(), k)
	if err != nil {
		return err
	}
	w.Header().Set(headerLocation, r.prefix+keys+"/"+made.ID)
	return sendText(w, http.StatusCreated, &made, text)
}

// rotateAPIKey gives a key a new text. The new text grants all rights of the key, so only callers that could have made the key may rotate
// it.
func (a *API) rotateAPIKey(w http.ResponseWriter, r *request) error {
	k, err := a.keyOf(r)
	if err != nil {
		return err
	}
	if err := mayGive(&r.caller, &k); err != nil {
		return err
	}
	in, err := readJSON[APIKeyRotation](a, w, r)
	if err != nil {
		return err
	}
	rotation := apikey.Rotation{Overlap: DefaultOverlap, Lost: in.Lost, By: maker(&r.caller)}
	if s := in.Seconds; s != nil {
		if *s < 0 || *s > int64(apikey.MaxOverlap/time.Second) || in.Lost {
			return workflow.Errorf(workflow.InvalidRequest, "seconds is not 0 to %d, or given for a text that was lost",
				int64(apikey.MaxOverlap/time.Second))
		}
		rotation.Overlap = time.Duration(*s) * time.Second
	}
	rotated, text, err := a.cfg.Keys.Rotate(r.Context(), k.Tenant, k.ID, rotation)
	if err != nil {
		return err
	}
	return sendText(w, http.StatusOK, &rotated, text)
}

// revokeAPIKey takes a key back.
func (a *API) revokeAPIKey(r *request) error {
	if a.cfg.Keys == nil {
		return a.nothingHere()
	}
	_, err := a.cfg.Keys.Revoke(r.Context(), r.tenant(), r.text("api_key"), maker(&r.caller))
	return err
}

// sendText answers with a key and its text, which no cache may store.
func sendText(w http.ResponseWriter, status int, k *apikey.Key, text string) error {
	w.Header().Set("Cache-Control", "no-store")
	return sendJSON(w, status, APIKeyText{APIKeyOf(k), text})
}

// key is what is asked for. Error: InvalidRequest.
func (in *NewAPIKey) key(c *Caller) (apikey.Key, error) {
	k := apikey.Key{Tenant: in.Tenant, Name: in.Name, Actor: in.Actor, Roles: in.Roles, CreatedBy: maker(c), ExpiresAt: in.ExpiresAt}
	if k.Tenant == "" {
		k.Tenant = c.Tenant
	}
	if k.Actor == "" {
		k.Actor = c.Actor
	}
	for _, text := range in.Grants {
		g, err := auth.ParseGrant(text)
		if err != nil {
			return k, workflow.Errorf(workflow.InvalidRequest, "%s", err)
		}
		k.Grants = append(k.Grants, g)
	}
	return k, nil
}

// maker identifies a caller and its credential, as shown for a key that it made.
func maker(c *Caller) string { return c.Actor + " (" + c.Proof.String() + ")" }

// mayGive refuses a key with more rights than its maker has: a tenant, an actor, a role, a grant, or, for a maker that uses a key, a later
// end. Error: Forbidden.
func mayGive(c *Caller, k *apikey.Key) error {
	everything := auth.Target{}
	switch {
	case k.Tenant != c.Tenant && !c.May(OperateAll, everything):
		return c.Lacks(OperateAll, everything)
	case (k.Actor != c.Actor || k.Tenant != c.Tenant) && !c.May(ActAs, everything):
		return c.Lacks(ActAs, everything)
	case c.Proof.Kind == auth.APIKey && !c.Until.IsZero() && (k.ExpiresAt.IsZero() || k.ExpiresAt.After(c.Until)):
		return c.Denied("a key that is made with another one ends with that at the latest")
	}
	for _, role := range k.Roles {
		if !transitions.HasRole(c.Roles, role) {
			return c.Denied(`this takes every role of the key, also "` + role + `"`)
		}
	}
	// What is narrowed to a business key is so to an instance of that tenant.
	there := auth.Principal{Tenant: k.Tenant, Actor: c.Actor, Grants: c.Grants, Proof: c.Proof}
	for _, g := range k.Grants {
		if !there.May(g.Right, g.Target) {
			return there.Lacks(g.Right, g.Target)
		}
	}
	return nil
}
