package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/workflow"
)

// Bearer identifies callers by the credential in the header Authorization (RFC 6750, section 2.1), with verify, whose errors are returned
// unchanged. Callers cannot use the headers that [Loopback] accepts, except Pawl-Actor with the grant to act as others.
func Bearer(verify func(ctx context.Context, credential string) (auth.Principal, error)) Identify {
	return func(r *http.Request) (Caller, error) {
		credential, err := bearer(r)
		if err != nil {
			return Caller{}, err
		}
		for _, name := range ofCallers {
			if name != headerActor && len(r.Header[name]) > 0 { // see ActAs
				return Caller{}, workflow.Errorf(workflow.InvalidRequest, "the header %s means nothing here: the credential says who calls", name)
			}
		}
		return verify(r.Context(), credential)
	}
}

func bearer(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", auth.Refuse(auth.Missing, "a credential is required, in the header Authorization: Bearer …")
	}
	scheme, credential, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || credential == "" {
		return "", auth.Refuse(auth.Malformed, "the header Authorization is not one of Bearer and a credential")
	}
	return strings.TrimSpace(credential), nil
}
