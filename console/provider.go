package console

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/login"
	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/workflow"
)

// Login has people sign in at an identity provider; a [login.Provider] does.
type Login interface {
	Begin(ctx context.Context, redirect string) (address string, pending login.Pending, err error)
	Finish(ctx context.Context, from string, pending login.Pending, came url.Values) (token string, err error)
}

const (
	cookieOfLogin = "pawl_console_login"
	loginSeconds  = 600
)

// leaving is what a browser keeps while its user is at the identity provider.
type leaving struct {
	login.Pending
	Next string `json:"n"`
}

// leave redirects to the identity provider, from a link: the policy permits no form to lead to another origin. Requests of other sites are
// refused, although they would gain nothing.
func (c *Console) leave(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	v := &visit{Console: c, w: w, r: r}
	err := v.toProvider()
	if err != nil {
		v.showSignIn(workflow.CodeOf(err).Info().Status, signing{Problem: workflow.AsError(err).Message})
	}
}

// errNoOrigin refuses to have a provider send a code to a host that a request names, unless that is this machine.
var errNoOrigin = workflow.Errorf(workflow.Forbidden,
	"signing in at the identity provider needs the public URL of this service; whoever runs it sets it with --public-url")

func (v *visit) toProvider() error {
	switch {
	case v.Login == nil:
		return errNoPage
	case v.r.Header.Get("Sec-Fetch-Site") == "cross-site" || v.r.Header.Get("Sec-Fetch-Site") == "same-site":
		return errForged
	case v.Origin == "" && !onThisMachine(v.r.Host):
		return errNoOrigin
	}
	to, pending, err := v.Login.Begin(v.r.Context(), v.origin()+v.Path+"/signed-in")
	if err != nil {
		return err
	}
	text, err := json.Marshal(leaving{pending, v.next(v.query("next"))})
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

// origin is how browsers reach this server. Without Origin it is the host that the request names, over TLS, which may end before this
// server.
func (v *visit) origin() string {
	if v.Origin != "" {
		return v.Origin
	}
	if v.r.TLS == nil && onThisMachine(v.r.Host) {
		return "http://" + v.r.Host
	}
	return "https://" + v.r.Host
}

// loginCookie is limited to one path, and is also sent when another site, such as the identity provider, redirects there.
func (v *visit) loginCookie(value string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{Name: cookieOfLogin, Value: value, Path: v.Path + "/signed-in", MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: v.r.TLS != nil || !onThisMachine(v.r.Host)})
}

// signedIn accepts the token of a user that returns from the identity provider.
func (c *Console) signedIn(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	v := &visit{Console: c, w: w, r: r}
	next, err := v.fromProvider()
	v.loginCookie("", -1)
	if err != nil {
		v.showSignIn(workflow.CodeOf(err).Info().Status, signing{Next: next, Problem: workflow.AsError(err).Message})
		return
	}
	_ = v.seeOther(next)
}

func (v *visit) fromProvider() (next string, err error) {
	next = v.next("")
	if v.Login == nil {
		return next, errNoPage
	}
	left, err := v.left()
	if err != nil {
		return next, err
	}
	next = v.next(left.Next)
	token, err := v.Login.Finish(v.r.Context(), address(v.r), left.Pending, v.r.URL.Query())
	if err != nil {
		return next, err
	}
	v.session = session.Session{Credential: token}
	return next, v.admit()
}

// left opens the cookie that this node, or another one, has sealed before its user left for the identity provider. Nothing is asked of
// the provider without it.
func (v *visit) left() (left leaving, err error) {
	cookie, err := v.r.Cookie(cookieOfLogin)
	if err != nil {
		return left, auth.Refuse(auth.Malformed, "this was not begun in this browser, or too long ago: sign in again")
	}
	kept, age, err := v.Sessions.Open(v.r.Context(), cookie.Value)
	switch {
	case err != nil && workflow.CodeOf(err) != workflow.Unauthorized:
		return left, err
	case err != nil || age > loginSeconds*time.Second || json.Unmarshal([]byte(kept.SigningIn), &left) != nil:
		return leaving{}, auth.Refuse(auth.Malformed, "the cookie "+cookieOfLogin+" is not one of this service, or too old: sign in again")
	}
	return left, nil
}

// address returns the address that a request comes from, without the port.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
