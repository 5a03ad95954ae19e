package api

import (
	"net/http"
	"time"

	"github.com/pawlhq/pawl/auth"
)

// stillHolds refuses an answer that arrived while the caller waited, if its credential has ended meanwhile. h is the header of the answer.
func (r *request) stillHolds(h http.Header) error {
	c := &r.caller
	over := !c.Until.IsZero() && !time.Now().Before(c.Until)
	select {
	case <-c.Ended:
		over = true
	default:
	}
	if !over {
		return nil
	}
	err := auth.Refuse(auth.Expired, "the credential has ended while the request waited; ask again with another one")
	challenge(h, err)
	return err
}
