package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/workflow"
)

// keyList is the API keys of the tenant.
type keyList struct {
	polled
	Keys []api.APIKey
	Next string
}

func (v *visit) keys() error {
	list, err := get[api.APIKeyPage](v, "/v1/keys", v.listed())
	if err != nil {
		return err
	}
	return v.show("keys", "API keys", keyList{Keys: list.Keys, Next: v.nextPage(list.Next)})
}

// newKeyPage is the form of a key, or the key that was made.
type newKeyPage struct {
	Name, Actor, Roles, Grants, Expires string
	Problem, Key                        string
	Made                                *api.APIKeyText
}

func (v *visit) newKeyForm() error {
	if err := needs("keys", v.Has("keys")); err != nil {
		return err
	}
	return v.show("newkey", "New API key", newKeyPage{Key: uuid.NewString(), Grants: "read"})
}

// newKey makes a key. Its text is on this one page; the form that is sent again makes no other one.
func (v *visit) newKey() error {
	page := newKeyPage{Name: v.form("name"), Actor: v.form("actor"), Roles: v.form("roles"), Grants: v.form("grants"),
		Expires: v.form("expires"), Key: v.form("_key")}
	in := api.NewAPIKey{Name: page.Name, Actor: page.Actor, Roles: words(page.Roles), Grants: strings.Fields(page.Grants)}
	var err error
	if page.Expires != "" {
		in.ExpiresAt, err = momentOf(page.Expires)
	}
	var a *answer
	if err == nil {
		a, err = v.ask(http.MethodPost, "/v1/keys", nil, in)
	}
	if e, is := errors.AsType[*workflow.Error](err); is && e.Code != workflow.Unauthorized {
		page.Problem = e.Message
		return v.render(e.Code.Info().Status, "newkey", "New API key", page)
	}
	return v.showKey(page, a, err)
}

func (v *visit) showKey(page newKeyPage, a *answer, err error) error {
	if err != nil {
		return err
	}
	page.Made = &api.APIKeyText{}
	if err := a.into(page.Made); err != nil {
		return err
	}
	return v.render(a.status, "newkey", "API key", page)
}

// words are those of a list with commas.
func words(text string) (list []string) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}

var keyChanges = map[string]confirm{
	"revoke": {Heading: "Revoke the key", Button: "Revoke", Bad: true,
		Says: "Every node refuses the key within a second, and what is open with it ends. This cannot be taken back. " +
			"Keys that it has made stay."},
	"rotate": {Heading: "Give the key a new text", Button: "Make a new text",
		Says: "The key gets a new text, which is shown once. The text that it has is good beside it for a day."},
}

func (v *visit) keyForm() error {
	c, err := choice(keyChanges, v.r.PathValue("action"))
	if err != nil {
		return err
	}
	k, err := get[api.APIKey](v, "/v1"+segments("keys", v.r.PathValue("key")), nil)
	if err != nil {
		return err
	}
	c.Back, c.Runbook = v.at("keys"), runbook("api-keys")
	c.Facts = []attribute{{"Name", k.Name}, {"Id", k.ID}, {"Actor", k.Actor}, {"Grants", strings.Join(k.Grants, " ")}}
	return v.confirmation(c)
}

func (v *visit) changeKey() error {
	action := v.r.PathValue("action")
	if _, err := choice(keyChanges, action); err != nil {
		return err
	}
	path := "/v1" + segments("keys", v.r.PathValue("key"))
	if action == "revoke" {
		return v.send(http.MethodDelete, path, nil, v.at("keys"))
	}
	a, err := v.ask(http.MethodPost, path+"/rotate", nil, api.APIKeyRotation{})
	return v.showKey(newKeyPage{}, a, err)
}
