package console

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/workflow"
)

// mePage is who the user is, and what he may.
type mePage struct {
	api.Me
	Asked   string
	Problem string
}

// account shows the user, and whether the user has a requested grant, with the reason.
func (v *visit) account() error {
	page := mePage{Me: v.me, Asked: v.query("can")}
	status := http.StatusOK
	if page.Asked != "" {
		found, err := get[api.Me](v, "/v1/me", url.Values{"can": {page.Asked}})
		e, is := errors.AsType[*workflow.Error](err)
		switch {
		case err == nil:
			page.Me = found
		case is && e.Code == workflow.InvalidRequest:
			page.Problem, status = e.Message, http.StatusBadRequest
		default:
			return err
		}
	}
	return v.render(status, "me", "You", page)
}
