package console

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/login"
	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/workflow"
)

// Login signs users in at an identity provider; a [login.Provider] does.
type Login interface {
	Begin(ctx context.Context, redirect string) (address string, pending login.Pending, err error)
	Finish(ctx context.Context, from string, pending login.Pending, came url.Values) (token string, err error)
}

const (
	loginCookieName = "pawl_console_login"
	loginSeconds    = 600
)

// signInPage is the sign-in form.
type signInPage struct {
	Next                 string // where to go afterwards
	Ended                bool   // the session has ended
	Problem              string
	Actor, Tenant, Roles string
}

// signInHandler serves users who have not signed in. The handler returns where to continue; an error is shown on the sign-in page.
func (c *Console) signInHandler(serve func(*visit, *signInPage) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		v := &visit{Console: c, w: w, r: r}
		page := signInPage{Next: v.nextPage(v.Query("next"))}
		if err := serve(v, &page); err != nil {
			page.Problem = workflow.AsError(err).Message
			v.showSignIn(workflow.CodeOf(err).Info().Status, page)
		}
	}
}

func (v *visit) showSignIn(status int, page signInPage) {
	if err := v.renderBare(status, "signin", "Sign in", page); err != nil {
		v.fail(err)
	}
}

func (v *visit) signInForm(page *signInPage) error {
	page.Ended = v.Query("ended") != ""
	v.showSignIn(http.StatusOK, *page)
	return nil
}

// signIn accepts a credential that the API accepts. Before the session there is only the form's origin, as reported by the browser, to
// check.
func (v *visit) signIn(page *signInPage) error {
	if !sameOrigin(v.r) {
		return errForged
	}
	if err := readForm(v.w, v.r, maxSignIn); err != nil {
		return err
	}
	*page = signInPage{Next: v.nextPage(v.form("next")), Actor: v.form("actor"), Tenant: v.form("tenant"), Roles: v.form("roles")}
	v.session = session.Session{Credential: v.form("credential")}
	if v.Local && v.session.Credential == "" {
		v.session.Actor, v.session.Tenant, v.session.Roles = page.Actor, page.Tenant, page.Roles
	}
	return v.admit(page.Next)
}

// admit verifies the credential with the API, creates a session and redirects.
func (v *visit) admit(next string) error {
	if v.session.Credential == "" && !v.Local {
		return workflow.Errorf(workflow.Unauthorized, "enter an API key, a token or a ticket")
	}
	if _, err := get[wire.Me](v, "/v1/me", nil); err != nil {
		return err
	}
	if err := v.keep(); err != nil {
		return err
	}
	return v.seeOther(next)
}

// nextPage returns a page of the console: the given one, or the first one if that is something else.
func (v *visit) nextPage(address string) string {
	if !strings.HasPrefix(address, v.Path+"/") || strings.HasPrefix(address, v.Path+"/sign-") || strings.ContainsAny(address, "\\\r\n\t") {
		return v.Path + "/"
	}
	return address
}

func (v *visit) signOut() error {
	v.cookie("", -1)
	return v.seeOther(v.Path + "/sign-in")
}

// pendingLogin is the content of the cookie of a user who is at the identity provider.
type pendingLogin struct {
	login.Pending
	Next string `json:"n"`
}

// errNoOrigin prevents the provider from sending a code to any host that a request names.
var errNoOrigin = workflow.Errorf(workflow.Forbidden,
	"signing in at the identity provider requires the public URL of this service, which its operator sets with --public-url")

// beginLogin redirects to the identity provider. It follows a link, because the content security policy restricts forms to this origin.
func (v *visit) beginLogin(page *signInPage) error {
	switch {
	case v.Login == nil:
		return errNoPage
	case fromOtherSite(v.r):
		return errForged
	case v.Origin == "" && !onThisMachine(v.r.Host):
		return errNoOrigin
	}
	to, pending, err := v.Login.Begin(v.r.Context(), v.origin()+v.Path+"/signed-in")
	if err != nil {
		return err
	}
	text, err := json.Marshal(pendingLogin{pending, page.Next})
	if err != nil {
		return err
	}
	sealed, err := v.Sessions.Seal(v.r.Context(), session.Session{SigningIn: string(text)})
	if err != nil {
		return err
	}
	v.loginCookie(sealed, loginSeconds)
	return v.seeOther(to)
}

// origin returns how browsers reach this server. Without Origin that is the request's host; TLS may end at a proxy.
func (v *visit) origin() string {
	if v.Origin != "" {
		return v.Origin
	}
	if v.r.TLS == nil && onThisMachine(v.r.Host) {
		return "http://" + v.r.Host
	}
	return "https://" + v.r.Host
}

// loginCookie sets a cookie that is limited to one path, and also sent when the identity provider redirects there.
func (v *visit) loginCookie(value string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{Name: loginCookieName, Value: value, Path: v.Path + "/signed-in", MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: v.r.TLS != nil || !onThisMachine(v.r.Host)})
}

// finishLogin accepts the token of a user who returns from the identity provider.
func (v *visit) finishLogin(page *signInPage) error {
	v.loginCookie("", -1)
	page.Next = v.nextPage("")
	if v.Login == nil {
		return errNoPage
	}
	pending, err := v.pendingLogin()
	if err != nil {
		return err
	}
	page.Next = v.nextPage(pending.Next)
	from, _, err := net.SplitHostPort(v.r.RemoteAddr)
	if err != nil {
		from = v.r.RemoteAddr
	}
	token, err := v.Login.Finish(v.r.Context(), from, pending.Pending, v.r.URL.Query())
	if err != nil {
		return err
	}
	v.session = session.Session{Credential: token}
	return v.admit(page.Next)
}

// pendingLogin opens the cookie of beginLogin. Nothing is requested from the provider without it.
func (v *visit) pendingLogin() (pending pendingLogin, err error) {
	cookie, err := v.r.Cookie(loginCookieName)
	if err != nil {
		return pending, auth.Refuse(auth.Malformed, "this login was not started in this browser, or too long ago: sign in again")
	}
	kept, age, err := v.Sessions.Open(v.r.Context(), cookie.Value)
	switch {
	case err != nil && workflow.CodeOf(err) != workflow.Unauthorized:
		return pending, err
	case err != nil || age > loginSeconds*time.Second || json.Unmarshal([]byte(kept.SigningIn), &pending) != nil:
		return pendingLogin{}, auth.Refuse(auth.Malformed, "the cookie "+loginCookieName+" is invalid or too old: sign in again")
	}
	return pending, nil
}
