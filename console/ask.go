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

// reading is how JSON is read: what SQL callers have stored is taken as it is.
var reading = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// answer is what the API says.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// ask asks the API in the name of the user, and reads the whole answer. body is JSON, nil for none; header is pairs of a name and a
// value. Its error is a *[workflow.Error]: what the API refuses.
func (v *visit) ask(method, path string, query url.Values, body any, header ...string) (*answer, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body, reading); err != nil {
			return nil, workflow.Errorf(workflow.InvalidRequest, "what was entered cannot be sent: it is not valid UTF-8")
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
	if err := json.Unmarshal(a.body.Bytes(), &problem, reading); err != nil || problem.Code == "" {
		return nil, unreadable(fmt.Errorf("%d: %w", a.status, err))
	}
	return a, problem.Err()
}

// request makes a request to the API in the name of the user, from the user's address, and without anything that the browser sent.
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
		r.Header.Set("Content-Type", "application/json")
	}
	if id := v.w.Header().Get("X-Request-Id"); id != "" {
		r.Header.Set("X-Request-Id", id) // one name in the log for what was asked for one page
	}
	s := &v.session
	if s.Credential != "" {
		r.Header.Set("Authorization", "Bearer "+s.Credential)
	}
	for name, value := range map[string]string{"Pawl-Tenant": s.Tenant, "Pawl-Actor": s.Actor, "Pawl-Roles": s.Roles} {
		if value != "" && v.Local && s.Credential == "" {
			r.Header.Set(name, value)
		}
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	return r, nil
}

// get asks for something that is JSON.
func get[T any](v *visit, path string, query url.Values) (out T, err error) {
	a, err := v.ask(http.MethodGet, path, query, nil)
	if err != nil {
		return out, err
	}
	return out, a.into(&out)
}

// into reads an answer that is JSON.
func (a *answer) into(out any) error { return read(a.body.Bytes(), out) }

// read reads JSON of the API.
func read(text []byte, out any) error {
	if err := json.Unmarshal(text, out, reading); err != nil {
		return unreadable(err)
	}
	return nil
}

func unreadable(cause error) error {
	return &workflow.Error{Code: workflow.Internal, Message: "the answer cannot be read", Cause: cause}
}

// segments joins texts to a path, each of them one part of it, whatever it has in it.
func segments(texts ...string) (path string) {
	for _, text := range texts {
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

// only passes over an error that says that the user may not know, or that there is nothing of the kind here: a page then has less on it.
func only(err error) error {
	switch workflow.CodeOf(err) {
	case workflow.Forbidden, workflow.NotFound:
		return nil
	}
	return err
}
