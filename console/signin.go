package console

import (
	"net/http"
	"strings"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/workflow"
)

// signing is the page on which somebody signs in.
type signing struct {
	Next                 string
	Ended                bool   // his session has ended
	Problem              string // what is wrong with what he has entered
	Actor, Tenant, Roles string
}

func (c *Console) signInPage(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	v := &visit{Console: c, w: w, r: r}
	v.showSignIn(http.StatusOK, signing{Next: v.next(r.URL.Query().Get("next")), Ended: r.URL.Query().Get("ended") != ""})
}

func (v *visit) showSignIn(status int, page signing) {
	if err := v.bare(status, "signin", "Sign in", page); err != nil {
		v.fail(err)
	}
}

// signIn accepts a credential that the API accepts. There is no session yet and so no token: the browser reports that the form comes from a
// page of this origin.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	v := &visit{Console: c, w: w, r: r}
	if !sameOrigin(r) {
		v.showSignIn(http.StatusForbidden, signing{Problem: errForged.Error()})
		return
	}
	if err := readForm(w, r, maxSignIn); err != nil {
		v.showSignIn(workflow.CodeOf(err).Info().Status, signing{Problem: workflow.AsError(err).Message})
		return
	}
	page := signing{Next: v.next(v.form("next")), Actor: v.form("actor"), Tenant: v.form("tenant"), Roles: v.form("roles")}
	v.session = session.Session{Credential: v.form("credential")}
	if v.Local && v.session.Credential == "" {
		v.session.Actor, v.session.Tenant, v.session.Roles = page.Actor, page.Tenant, page.Roles
	}
	if err := v.admit(); err != nil {
		page.Problem = workflow.AsError(err).Message
		v.showSignIn(workflow.CodeOf(err).Info().Status, page)
		return
	}
	_ = v.seeOther(page.Next)
}

// admit asks the API who it is, and gives the browser a session.
func (v *visit) admit() error {
	if v.session.Credential == "" && !v.Local {
		return workflow.Errorf(workflow.Unauthorized, "enter an API key, a token or a ticket")
	}
	if _, err := get[api.Me](v, "/v1/me", nil); err != nil {
		return err
	}
	return v.keep()
}

// next is where to go after that: a page of the console, else its first one.
func (v *visit) next(asked string) string {
	if !strings.HasPrefix(asked, v.Path+"/") || strings.HasPrefix(asked, v.Path+"/sign-") || strings.ContainsAny(asked, "\\\r\n\t") {
		return v.Path + "/"
	}
	return asked
}

func (v *visit) signOut() error {
	v.cookie("", -1)
	return v.seeOther(v.Path + "/sign-in")
}
