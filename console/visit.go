package console

import (
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/workflow"
)

// visit is one request of somebody who has signed in.
type visit struct {
	*Console
	w       http.ResponseWriter
	r       *http.Request
	session session.Session
	me      api.Me
	can     auth.Principal // what he may, as far as that decides what is shown
}

const (
	cookieName = "pawl_console"
	// renewAfter is how old a seal may be that is not made anew.
	renewAfter = 5 * time.Minute
	// maxForm is the longest form in bytes: a payload of 1 MiB, escaped.
	maxForm = 4 << 20
	// maxSignIn is the longest form of who has not signed in.
	maxSignIn = 16 << 10
	// tokenField is the field of every form that repeats the token of the session.
	tokenField = "_token"
)

var (
	errNotSignedIn = errors.New("nobody has signed in")
	errForged      = workflow.Errorf(workflow.Forbidden, "this form is not from a page of this console, or from before you have signed in: "+
		"load the page again and repeat")
)

// enter finds out who asks. A form is taken only from a page of this console.
func (v *visit) enter() error {
	post := v.r.Method == http.MethodPost
	if post && !sameOrigin(v.r) {
		return errForged
	}
	age, err := v.open()
	if err != nil {
		return err
	}
	if post {
		if err := v.checkForm(); err != nil {
			return err
		}
	}
	if v.me, err = get[api.Me](v, "/v1/me", nil); err != nil {
		return err
	}
	v.can = auth.Principal{Tenant: v.me.Tenant, Actor: v.me.Actor, Roles: v.me.Roles}
	for _, text := range v.me.Grants {
		if g, err := auth.ParseGrant(text); err == nil {
			v.can.Grants = append(v.can.Grants, g)
		}
	}
	if age > renewAfter {
		return v.keep()
	}
	return nil
}

// open reads the session. Without credentials every visitor has one.
func (v *visit) open() (age time.Duration, err error) {
	cookie, err := v.r.Cookie(cookieName)
	if err == nil {
		v.session, age, err = v.Sessions.Open(v.r.Context(), cookie.Value)
	}
	if err == nil && v.session.SigningIn != "" { // it was sealed for another cookie
		v.session = session.Session{}
		return 0, errNotSignedIn
	}
	switch {
	case err == nil:
		return age, nil
	case !errors.Is(err, http.ErrNoCookie) && workflow.CodeOf(err) != workflow.Unauthorized:
		return 0, err
	case v.Local && v.r.Method != http.MethodPost:
		v.session = session.Session{}
		return 0, v.keep()
	}
	return 0, errNotSignedIn
}

// keep gives the browser the session, sealed now.
func (v *visit) keep() error {
	text, err := v.Sessions.Seal(v.r.Context(), v.session)
	if err != nil {
		return err
	}
	if v.session.Token == "" { // it has been made by the seal
		if v.session, _, err = v.Sessions.Open(v.r.Context(), text); err != nil {
			return err
		}
	}
	v.cookie(text, int(session.Idle/time.Second))
	return nil
}

// cookie is sent by browsers to the console alone, by pages of this site alone, and shown to no script.
func (v *visit) cookie(value string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{Name: cookieName, Value: value, Path: v.Path + "/", MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: v.r.TLS != nil || !onThisMachine(v.r.Host)})
}

// onThisMachine reports whether a Host names a loopback address, to which browsers send no secure cookie without TLS.
func onThisMachine(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// checkForm reads a form, and refuses one that does not have the token of the session.
func (v *visit) checkForm() error {
	if err := readForm(v.w, v.r, maxForm); err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(v.r.PostForm.Get(tokenField)), []byte(v.session.Token)) != 1 {
		return errForged
	}
	return nil
}

func readForm(w http.ResponseWriter, r *http.Request, most int64) error {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	err := r.ParseForm()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return workflow.Errorf(workflow.TooLarge, "the form has more than %d bytes", most)
	}
	if err != nil {
		return workflow.Errorf(workflow.InvalidRequest, "the form cannot be read")
	}
	return nil
}

// sameOrigin reports whether the browser marks the request as same-origin. Requests without either header are rejected.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && origin.Host == r.Host
}

// form is a field of the form that was sent, without the spaces around it.
func (v *visit) form(name string) string { return strings.TrimSpace(v.r.PostForm.Get(name)) }

// query is a parameter of the address.
func (v *visit) query(name string) string { return v.r.URL.Query().Get(name) }

// at is an address of the console.
func (v *visit) at(texts ...string) string { return v.Path + segments(texts...) }

// seeOther leads the browser to where something is to be seen.
func (v *visit) seeOther(address string) error {
	http.Redirect(v.w, v.r, address, http.StatusSeeOther)
	return nil
}

// fail shows what went wrong.
func (v *visit) fail(err error) {
	switch code := workflow.CodeOf(err); {
	case errors.Is(err, errNotSignedIn), code == workflow.Unauthorized:
		v.lead(err)
		return
	case code == workflow.Internal && errors.Unwrap(err) != nil:
		v.Log.ErrorContext(v.r.Context(), "console: a page failed", "error", err, "path", v.r.URL.Path)
	}
	e := workflow.AsError(err)
	info := e.Code.Info()
	page := failure{Status: info.Status, Code: string(e.Code), Meaning: info.Meaning, Detail: e.Message, Retry: info.Retry}
	if err := v.render(info.Status, "failure", titleOf(info.Status), page); err != nil {
		v.Log.ErrorContext(v.r.Context(), "console: a page failed", "error", err)
		http.Error(v.w, "the page failed; the log has the details", http.StatusInternalServerError)
	}
}

type failure struct {
	Status                int
	Code, Meaning, Detail string
	Retry                 bool
}

func titleOf(status int) string {
	switch status {
	case http.StatusForbidden:
		return "Not for you"
	case http.StatusNotFound:
		return "Not found"
	}
	return "That could not be done"
}

// lead redirects a user without a session to the sign-in page. A link from another site arrives without the cookie; a second request, from
// a page of this site, carries it.
func (v *visit) lead(err error) {
	if _, none := v.r.Cookie(cookieName); none != nil && v.r.Method == http.MethodGet {
		if site := v.r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			v.again()
			return
		}
	}
	q := url.Values{}
	if v.r.Method == http.MethodGet {
		q.Set("next", v.r.URL.RequestURI())
	}
	if !errors.Is(err, errNotSignedIn) {
		q.Set("ended", "1")
	}
	v.cookie("", -1)
	http.Redirect(v.w, v.r, v.Path+"/sign-in?"+q.Encode(), http.StatusSeeOther)
}

// again lets the browser ask for the same page once more, as a page of this site does.
func (v *visit) again() {
	if err := v.bare(http.StatusOK, "again", "One moment", v.r.URL.RequestURI()); err != nil {
		v.Log.ErrorContext(v.r.Context(), "console: a page failed", "error", err)
	}
}
