package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// logPage is a part of the log, newest first.
type logPage struct {
	Events        []logEvent
	Head          int64
	From          int64  // the page has the matching events after this position
	Older, Newest string // addresses of other parts
	Problem       string
	Origin        string // of this node, for copied requests
}

// logEvent is an event with its JSON.
type logEvent struct {
	wire.Event
	Text jsontext.Value
}

// eventFilters are the parameters that select events.
var eventFilters = []string{"workflow", "instance", "business_key", "type", "state"}

// Limits of a page of the log. A filtered page searches more positions.
const (
	logPositions      = 50
	filteredPositions = 1000
	maxEvents         = 1000
)

func (v *visit) log() error {
	page := logPage{Origin: v.origin()}
	if err := v.readLog(&page); err != nil {
		if workflow.CodeOf(err).Info().Status >= 500 || workflow.CodeOf(err) == workflow.Unauthorized {
			return err
		}
		page.Problem = workflow.AsError(err).Message
	}
	return v.show("log", "Log", page)
}

// readLog reads the positions up to the one that the address names, or the newest ones.
func (v *visit) readLog(page *logPage) (err error) {
	filter, positions := v.params(eventFilters...), int64(logPositions)
	if page.Head, err = v.head(filter); err != nil {
		return err
	}
	last := page.Head
	if upto, err := strconv.ParseInt(v.Query("upto"), 10, 64); err == nil && upto > 0 && upto < last {
		last = upto
	}
	if len(filter) > 0 {
		positions = filteredPositions
	}
	page.From = max(0, last-positions)
	found, _, err := v.events(filter, strconv.FormatInt(page.From, 10), maxEvents)
	if err != nil {
		return err
	}
	page.Events = slices.DeleteFunc(found, func(e logEvent) bool { return e.Position > last })
	slices.Reverse(page.Events)
	if last < page.Head {
		page.Newest = v.addressWith("upto", "")
	} else if v.can.Has("stream") {
		filter.Set("after", strconv.FormatInt(last, 10))
		v.Updates = &Updates{Streams: []string{v.At("live") + "?" + filter.Encode()}, Every: 100}
	}
	if page.From > 0 {
		page.Older = v.addressWith("upto", strconv.FormatInt(page.From, 10))
	}
	return nil
}

// head returns the newest position of the log.
func (v *visit) head(filter url.Values) (int64, error) {
	_, head, err := v.events(filter, "now", 1)
	return head, err
}

// events reads events after a position, or the oldest ones if those were removed.
func (v *visit) events(filter url.Values, after string, limit int) (list []logEvent, head int64, err error) {
	q := url.Values{"after": {after}, "limit": {strconv.Itoa(limit)}}
	maps.Copy(q, filter)
	page, err := get[wire.Events](v, "/v1/events", q)
	if workflow.CodeOf(err) == workflow.EventsGone {
		q.Set("after", "start")
		page, err = get[wire.Events](v, "/v1/events", q)
	}
	if err != nil {
		return nil, 0, err
	}
	for _, text := range page.Events {
		e := logEvent{Text: text}
		if err := decode(text, &e.Event); err != nil {
			return nil, 0, err
		}
		list = append(list, e)
	}
	return list, page.Head, nil
}

// stream returns the address of an event stream for a page, from pairs of a parameter and a value.
func (v *visit) stream(pairs ...any) string { return v.At("live") + query(pairs...) }

// live serves an event stream of the API to the user: of the log, or of a command.
func (v *visit) live() error {
	if site := v.r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return errForged
	}
	sent := v.r.URL.Query()
	path, q := "/v1/events", url.Values{}
	if sent.Has("key") {
		path = v1("commands", sent.Get("scope"), sent.Get("key"))
	} else {
		for _, name := range append([]string{"after"}, eventFilters...) {
			if sent.Has(name) {
				q[name] = sent[name]
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
