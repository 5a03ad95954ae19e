package console

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// visit is a request of a user who has signed in.
type visit struct {
	*Console
	w       http.ResponseWriter
	r       *http.Request
	session session.Session
	Me      wire.Me
	can     auth.Principal // the user's rights, to decide what is shown
	Updates *Updates       // nil for a page that does not change
}

const (
	cookieName = "pawl_console"
	// renewAfter is the age at which a session is sealed again.
	renewAfter = 5 * time.Minute
	// maxForm is the maximum size of a form: a payload of 1 MiB, escaped.
	maxForm = 4 << 20
	// maxSignIn is the maximum size of a form of a user who has not signed in.
	maxSignIn = 16 << 10
	// tokenField is the field of the session's CSRF token.
	tokenField = "_token"
)

var (
	errNotSignedIn = errors.New("not signed in")
	errForged      = workflow.Errorf(workflow.Forbidden, "this form was not sent by a page of this console, or is older than your session: "+
		"reload the page and repeat")
)

// enter identifies the user. Forms are only accepted from pages of this console.
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
		// Parse a form, and rejects one without the token of the session.
		if err := readForm(v.w, v.r, maxForm); err != nil {
			return err
		}
		if subtle.ConstantTimeCompare([]byte(v.r.PostForm.Get(tokenField)), []byte(v.session.Token)) != 1 {
			return errForged
		}
	}
	if v.Me, err = get[wire.Me](v, "/v1/me", nil); err != nil {
		return err
	}
	v.can = auth.Principal{Tenant: v.Me.Tenant, Actor: v.Me.Actor, Roles: v.Me.Roles}
	for _, text := range v.Me.Grants {
		if g, err := auth.ParseGrant(text); err == nil {
			v.can.Grants = append(v.can.Grants, g)
		}
	}
	if age > renewAfter {
		return v.keep()
	}
	return nil
}

// open opens the session. If credentials are disabled, it creates one for users without.
func (v *visit) open() (age time.Duration, err error) {
	cookie, err := v.r.Cookie(cookieName)
	if err == nil {
		v.session, age, err = v.Sessions.Open(v.r.Context(), cookie.Value)
	}
	if err == nil && v.session.SigningIn != "" { // it was sealed for the other cookie
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

// keep seals the session into its cookie.
func (v *visit) keep() error {
	text, err := v.Sessions.Seal(v.r.Context(), v.session)
	if err != nil {
		return err
	}
	if v.session.Token == "" { // created by Seal
		if v.session, _, err = v.Sessions.Open(v.r.Context(), text); err != nil {
			return err
		}
	}
	v.cookie(text, int(session.Idle/time.Second))
	return nil
}

// cookie sets the session cookie. Browsers send it only to the console and from pages of this site, and hide it from scripts.
func (v *visit) cookie(value string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{Name: cookieName, Value: value, Path: v.Path + "/", MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: v.r.TLS != nil || !onThisMachine(v.r.Host)})
}

// onThisMachine reports whether a Host is a loopback address, to which browsers send no secure cookies without TLS.
func onThisMachine(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

func readForm(w http.ResponseWriter, r *http.Request, most int64) error {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	err := r.ParseForm()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return workflow.Errorf(workflow.TooLarge, "the form is longer than %d bytes", most)
	}
	if err != nil {
		return workflow.Errorf(workflow.InvalidRequest, "the form cannot be parsed")
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

// form returns a field of the form without surrounding spaces.
func (v *visit) form(name string) string { return strings.TrimSpace(v.r.PostForm.Get(name)) }

// seeOther redirects to a page.
func (v *visit) seeOther(address string) error {
	http.Redirect(v.w, v.r, address, http.StatusSeeOther)
	return nil
}

// fail shows an error.
func (v *visit) fail(err error) {
	code := workflow.CodeOf(err)
	if errors.Is(err, errNotSignedIn) || code == workflow.Unauthorized {
		v.requestSignIn(err)
		return
	}
	if code == workflow.Internal && errors.Unwrap(err) != nil {
		v.Log.ErrorContext(v.r.Context(), "console: a page failed", "error", err, "path", v.r.URL.Path)
	}
	info, title := code.Info(), "That could not be done"
	switch info.Status {
	case http.StatusForbidden:
		title = "Not for you"
	case http.StatusNotFound:
		title = "Not found"
	}
	v.Updates = nil
	if err := v.render(info.Status, "failure", title, failure{info, workflow.AsError(err).Message}); err != nil {
		v.Log.ErrorContext(v.r.Context(), "console: a page failed", "error", err)
		http.Error(v.w, "the page failed; the log has the details", http.StatusInternalServerError)
	}
}

type failure struct {
	workflow.CodeInfo
	Detail string
}

// requestSignIn redirects a user without a session to the sign-in page. A link from another site arrives without the cookie; a second
// request, from a page of this site, carries it.
func (v *visit) requestSignIn(err error) {
	get := v.r.Method == http.MethodGet
	if _, none := v.r.Cookie(cookieName); none != nil && get && fromOtherSite(v.r) {
		if err := v.renderBare(http.StatusOK, "again", "One moment", v.r.URL.RequestURI()); err != nil {
			v.Log.ErrorContext(v.r.Context(), "console: a page failed", "error", err)
		}
		return
	}
	q := url.Values{}
	if get {
		q.Set("next", v.r.URL.RequestURI())
	}
	if !errors.Is(err, errNotSignedIn) {
		q.Set("ended", "1")
	}
	v.cookie("", -1)
	http.Redirect(v.w, v.r, v.Path+"/sign-in?"+q.Encode(), http.StatusSeeOther)
}

// fromOtherSite reports whether the browser marks the request as caused by another site.
func fromOtherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// mePage is the page about the user.
type mePage struct {
	wire.Me
	Problem string
}

// account shows the user, and whether the user has the grant in the address.
func (v *visit) account() (err error) {
	page, status := mePage{Me: v.Me}, http.StatusOK
	if v.Query("can") != "" {
		page.Me, err = get[wire.Me](v, "/v1/me", v.params("can"))
		if workflow.CodeOf(err) == workflow.InvalidRequest {
			page.Me, page.Problem, status = v.Me, workflow.AsError(err).Message, http.StatusBadRequest
		} else if err != nil {
			return err
		}
	}
	return v.render(status, "me", "You", page)
}

// lenient accepts stored data of SQL callers as it is.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// answer is a response of the API.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// ask calls the API as the user. The body is encoded as JSON unless it is nil; header is pairs of a name and a value. Errors are
// *[workflow.Error], as returned by the API.
func (v *visit) ask(method, path string, query url.Values, body any, header ...string) (*answer, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body, lenient); err != nil {
			return nil, workflow.Errorf(workflow.InvalidRequest, "the form is not valid UTF-8")
		}
	}
	r, err := v.request(method, path, query, text, header...)
	if err != nil {
		return nil, err
	}
	a := &answer{status: http.StatusOK, header: http.Header{}}
	v.API.ServeHTTP(a, r)
	if a.status < 400 {
		return a, nil
	}
	var problem transitions.Problem
	if err := json.Unmarshal(a.body.Bytes(), &problem, lenient); err != nil || problem.Code == "" {
		return nil, unreadable(fmt.Errorf("%d: %w", a.status, err))
	}
	return a, problem.Err()
}

// request returns a request to the API with the user's identity and address, and nothing else of the browser's request.
func (v *visit) request(method, path string, query url.Values, body []byte, header ...string) (*http.Request, error) {
	address := path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(v.r.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		return nil, workflow.Errorf(workflow.InvalidRequest, "there is no such address")
	}
	r.Host, r.RemoteAddr, r.TLS, r.RequestURI = v.r.Host, v.r.RemoteAddr, v.r.TLS, address
	if body != nil {
		header = append(header, "Content-Type", "application/json")
	}
	header = append(header, "X-Request-Id", v.w.Header().Get("X-Request-Id")) // one id in the log for all requests of a page
	if s := &v.session; s.Credential != "" {
		header = append(header, "Authorization", "Bearer "+s.Credential)
	} else if v.Local {
		header = append(header, "Pawl-Tenant", s.Tenant, "Pawl-Actor", s.Actor, "Pawl-Roles", s.Roles)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	return r, nil
}

// get requests JSON.
func get[T any](v *visit, path string, query url.Values) (out T, err error) {
	a, err := v.ask(http.MethodGet, path, query, nil)
	if err != nil {
		return out, err
	}
	return out, decode(a.body.Bytes(), &out)
}

// decode decodes JSON of the API.
func decode(text []byte, out any) error {
	if err := json.Unmarshal(text, out, lenient); err != nil {
		return unreadable(err)
	}
	return nil
}

func unreadable(cause error) error {
	return &workflow.Error{Code: workflow.Internal, Message: "the response of the API cannot be decoded", Cause: cause}
}

// proxy returns a response of the API to the browser.
func (v *visit) proxy(path string, q url.Values) error {
	a, err := v.ask(http.MethodGet, path, q, nil)
	if err != nil {
		return err
	}
	return v.forward(a, a.body.Bytes())
}

// forward returns a response of the API with this body.
func (v *visit) forward(a *answer, body []byte) error {
	for _, name := range []string{"Content-Type", "Content-Security-Policy"} {
		v.w.Header().Set(name, a.header.Get(name))
	}
	_, _ = v.w.Write(body)
	return nil
}

// v1 returns a path of the API.
func v1(parts ...string) string { return "/v1" + joinPath(parts...) }

// joinPath joins texts to a path and escapes each.
func joinPath(parts ...string) (path string) {
	for _, text := range parts {
		switch text {
		case ".", "..":
			text = "%2E" + text[1:]
		default:
			text = url.PathEscape(text)
		}
		path += "/" + text
	}
	return path
}

// ifVisible ignores that the user may not read something, or that it does not exist. Pages omit it.
func ifVisible(err error) error {
	switch workflow.CodeOf(err) {
	case workflow.Forbidden, workflow.NotFound:
		return nil
	}
	return err
}
