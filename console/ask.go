package console

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

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
