package console

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// logPage is a piece of the log, the newest first.
type logPage struct {
	Filter  map[string]string
	Events  []logEvent
	Head    int64
	From    int64  // the positions that were looked at begin after this one
	Older   string // the addresses of other pieces
	Newest  string
	Problem string
	Origin  string // of this node, for who copies a request
	stream  string
}

// logEvent is an event, and itself as JSON.
type logEvent struct {
	wire.Event
	Text jsontext.Value
}

// Whatever the filter, a page looks at so many positions; with one of them it shows most of what it finds.
const (
	positionsOfPage = 50
	positionsLooked = 1000
)

func (p logPage) live() *Live {
	if p.stream == "" {
		return nil
	}
	return &Live{Streams: []string{p.stream}, Every: 100}
}

func (v *visit) log() error {
	filter, page := url.Values{}, logPage{Filter: map[string]string{}}
	for _, name := range filters {
		if page.Filter[name] = v.query(name); page.Filter[name] != "" {
			filter.Set(name, page.Filter[name])
		}
	}
	if err := v.readLog(&page, filter); err != nil {
		if workflow.CodeOf(err).Info().Status >= 500 || workflow.CodeOf(err) == workflow.Unauthorized {
			return err
		}
		page.Problem = workflow.AsError(err).Message
	}
	page.Origin = v.origin()
	return v.show("log", "Log", page)
}

// readLog reads the positions up to the one that the address names, else the newest.
func (v *visit) readLog(page *logPage, filter url.Values) error {
	head, err := v.head(filter)
	if err != nil {
		return err
	}
	upto, looked := head, int64(positionsOfPage)
	if asked, err := strconv.ParseInt(v.query("upto"), 10, 64); err == nil && asked > 0 && asked < head {
		upto = asked
	}
	if len(filter) > 0 {
		looked = positionsLooked
	}
	page.Head, page.From = head, max(0, upto-looked)
	found, err := v.events(filter, page.From, mostEvents)
	if err != nil {
		return err
	}
	for _, e := range found.Events {
		if e.Position > upto {
			break
		}
		text, err := json.Marshal(e, reading)
		if err != nil {
			continue // it was read as JSON
		}
		page.Events = append(page.Events, logEvent{e, text})
	}
	slices.Reverse(page.Events)
	again := v.r.URL.Query()
	again.Del("upto")
	if upto == head {
		if v.can.Has("stream") {
			page.stream = v.stream(append([]any{"after", head}, pairsOf(page.Filter)...)...)
		}
	} else {
		page.Newest = v.at("log") + "?" + again.Encode()
	}
	if page.From > 0 {
		again.Set("upto", strconv.FormatInt(page.From, 10))
		page.Older = v.at("log") + "?" + again.Encode()
	}
	return nil
}

func pairsOf(filter map[string]string) (pairs []any) {
	for _, name := range filters {
		pairs = append(pairs, name, filter[name])
	}
	return pairs
}
