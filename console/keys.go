package console

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/workflow"
)

// newKeyPage is the form for a key, or a key's new text.
type newKeyPage struct {
	Name, Actor, Roles, Grants, Expires string
	Problem, Key                        string
	Made                                *api.APIKeyText
}

func (v *visit) newKeyForm() error {
	if err := requireGrant("keys", v.Has("keys")); err != nil {
		return err
	}
	return v.show("newkey", "New API key", newKeyPage{Key: uuid.NewString(), Grants: "read"})
}

// newKey creates a key and shows its text once. Sending the form again does not create another one.
func (v *visit) newKey() error {
	page := newKeyPage{Name: v.form("name"), Actor: v.form("actor"), Roles: v.form("roles"), Grants: v.form("grants"),
		Expires: v.form("expires"), Key: v.form("_key")}
	// Split a list at its commas.
	var list []string
	for item := range strings.SplitSeq(page.Roles, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	in := api.NewAPIKey{Name: page.Name, Actor: page.Actor, Roles: list, Grants: strings.Fields(page.Grants)}
	var err error
	if page.Expires != "" {
		in.ExpiresAt, err = parseTime(page.Expires)
	}
	var a *answer
	if err == nil {
		a, err = v.ask(http.MethodPost, "/v1/keys", nil, in)
	}
	if code := workflow.CodeOf(err); err != nil && code != workflow.Unauthorized {
		page.Problem = workflow.AsError(err).Message
		return v.render(code.Info().Status, "newkey", "New API key", page)
	}
	return v.showKey(page, a, err)
}

func (v *visit) showKey(page newKeyPage, a *answer, err error) error {
	if err != nil {
		return err
	}
	page.Made = &api.APIKeyText{}
	if err := decode(a.body.Bytes(), page.Made); err != nil {
		return err
	}
	return v.render(a.status, "newkey", "API key", page)
}

var keyChanges = operations{
	"revoke": {Heading: "Revoke the key", Button: "Revoke", Bad: true, Runbook: "api-keys",
		Says: "Every node rejects the key within a second, and its open streams end. This cannot be undone. Keys that it has created remain valid."},
	"rotate": {Heading: "Replace the text of the key", Button: "Create a new text", Runbook: "api-keys",
		Says: "The new text is shown once. The current text remains valid for a day."},
}

func (v *visit) keyForm() error {
	c, _, err := v.operation(keyChanges)
	if err != nil {
		return err
	}
	k, err := get[api.APIKey](v, v1("keys", v.r.PathValue("key")), nil)
	if err != nil {
		return err
	}
	c.Back = v.At("keys")
	c.Facts = []attribute{{"Name", k.Name}, {"Id", k.ID}, {"Actor", k.Actor}, {"Grants", strings.Join(k.Grants, " ")}}
	return v.confirmation(c)
}

func (v *visit) changeKey() error {
	_, name, err := v.operation(keyChanges)
	if err != nil {
		return err
	}
	path := v1("keys", v.r.PathValue("key"))
	if name == "revoke" {
		return v.send(http.MethodDelete, path, nil, v.At("keys"))
	}
	a, err := v.ask(http.MethodPost, path+"/rotate", nil, api.APIKeyRotation{})
	return v.showKey(newKeyPage{}, a, err)
}
