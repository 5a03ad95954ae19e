package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/workflow"
)

var everything auth.Target

// filters are the parameters by which events are selected.
var filters = []string{"workflow", "instance", "business_key", "type", "state"}

// newest are the events of the last so many positions of the log, the newest first, and the log's head.
func (v *visit) newest(filter url.Values, positions int64) (list []wire.Event, head int64, err error) {
	head, err = v.head(filter)
	if err != nil || head == 0 {
		return nil, 0, err
	}
	page, err := v.events(filter, max(0, head-positions), int(min(positions, mostEvents)))
	if err != nil {
		return nil, 0, err
	}
	slices.Reverse(page.Events)
	return page.Events, head, nil
}

// head is the newest position of the log.
func (v *visit) head(filter url.Values) (int64, error) {
	page, err := v.piece(filter, "now", 1)
	return page.Head, err
}

const mostEvents = 1000

// piece is a piece of the log.
type piece struct {
	Events []wire.Event
	Next   int64 // to be asked for what follows after it
	Head   int64
}

// events reads the log after a position; where that was removed, from the first that is there.
func (v *visit) events(filter url.Values, after int64, limit int) (piece, error) {
	page, err := v.piece(filter, strconv.FormatInt(after, 10), limit)
	if workflow.CodeOf(err) == workflow.EventsGone {
		return v.piece(filter, "start", limit)
	}
	return page, err
}

func (v *visit) piece(filter url.Values, after string, limit int) (out piece, err error) {
	q := url.Values{"after": {after}, "limit": {strconv.Itoa(limit)}}
	for name, values := range filter {
		q[name] = values
	}
	page, err := get[api.Events](v, "/v1/events", q)
	if err != nil {
		return out, err
	}
	out = piece{Next: page.NextAfter, Head: page.Head}
	for _, text := range page.Events {
		var e wire.Event
		if err := read(text, &e); err != nil {
			return out, err
		}
		out.Events = append(out.Events, e)
	}
	return out, nil
}

// stream is the address of an event stream for a page, from pairs of a parameter and a value.
func (v *visit) stream(pairs ...any) string { return v.at("live") + query(pairs...) }

// live is an event stream of the API, in the name of the user: of the log, or of a command. The stream ends when the API ends it.
func (v *visit) live() error {
	if site := v.r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return errForged
	}
	asked := v.r.URL.Query()
	path, q := "/v1/events", url.Values{}
	if asked.Has("key") {
		path = "/v1/commands" + segments(asked.Get("scope"), asked.Get("key"))
	} else {
		for _, name := range append([]string{"after"}, filters...) {
			if values, given := asked[name]; given {
				q[name] = values
			}
		}
	}
	r, err := v.request(http.MethodGet, path, q, nil, "Accept", "text/event-stream", "Last-Event-ID", v.r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	r.Body = http.NoBody
	v.API.ServeHTTP(v.w, r)
	return nil
}
