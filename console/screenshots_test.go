package console_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

var screenshots = flag.String("screenshots", "", "the folder that TestScreenshots writes a picture of each page to")

// TestScreenshots takes the pictures of docs/console.md:
//
//	go test ./console -run Screenshots -screenshots ../docs/console
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("-screenshots names no folder")
	}
	s := newStand(t, func(c *service.Config) {
		c.Sinks, c.Workflows = []relay.Sink{{Name: "bookkeeping", To: accountant{}}}, append(c.Workflows, parcels()...)
	})
	require.NoError(t, s.Engine().Admin().BeginVersion(t.Context(), "parcel", 1, ""))
	shown := s.busyDay()
	p := chromium.Start(t).Open(s.URL() + "/console/sign-in")
	s.picture(p, "sign-in", "")
	p = s.open(s.URL(), s.key("olga", everything, "boss"), "/")
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		s.picture(p, name, shown[name])
	}
}

// picture takes those of a page: wide and light; of some also wide and dark, and narrow.
func (s *stand) picture(p *chromium.Page, name, path string) {
	s.t.Helper()
	if path != "" {
		p.Navigate(s.URL() + "/console" + path)
	}
	take := func(suffix string, width int, scheme string) {
		p.Resize(width, 800, scheme)
		file := filepath.Join(*screenshots, name+suffix+".png")
		p.Picture(file)
		assert.NoError(s.t, shrink(file))
	}
	take("", 1280, "light")
	if slices.Contains([]string{"overview", "instance", "stuck", "sink"}, name) {
		take("-dark", 1280, "dark")
	}
	if slices.Contains([]string{"sign-in", "overview", "instances", "instance", "transition", "stuck", "commands", "paused",
		"new-migration"}, name) {
		take("-360", 360, "light")
	}
}

// accountant does not take the events of one workflow.
type accountant struct{}

func (accountant) Deliver(_ context.Context, events []transitions.Logged) []*sink.Failure {
	failures := make([]*sink.Failure, len(events))
	for i, e := range events {
		if e.Workflow == "claim" && e.Transition == "approve" {
			failures[i] = sink.Fail(sink.Permanent, nil, "422 Unprocessable: there is no account 8400")
		}
	}
	return failures
}

func (accountant) Close(context.Context) error { return nil }

// busyDay has something happen that each page shows, and returns their addresses by a name.
func (s *stand) busyDay() map[string]string {
	s.t.Helper()
	for _, o := range []struct{ customer, cart, then string }{
		{"Miller", "2041", "ship"}, {"Novak", "2042", ""}, {"Okafor", "2043", "cancel"}, {"Petit", "2044", "pay"}, {"Quist", "2045", "ship"},
		{"Rossi", "2046", ""},
	} {
		id := s.submit(transitions.Command{Workflow: "order", Transition: "place", Actor: o.customer,
			Payload: []byte(`{"customer":"` + o.customer + `","cart":"` + o.cart + `","total":4990,"currency":"EUR"}`)}).Instance
		switch o.then {
		case "cancel":
			s.do(id, "cancel", o.customer, `{"reason":"found it cheaper"}`)
		case "pay", "ship":
			s.do(id, "pay", o.customer, `{"method":"card"}`)
			s.awaitCase("it is paid", id, func(c inspect.Case) bool { return c.State == order.Paid })
		}
		if o.then == "ship" {
			s.do(id, "ship", "depot", `{"carrier":"DHL","tracking":"00340434161094"}`)
		}
	}
	s.deadMessage("evt_1NfQ8x")
	stuck := s.stuck("C-1041")
	chosen := "/bulk?action=do+note"
	for n, who := range []string{"ann", "ben", "cem", "dora"} {
		r := s.submit(transitions.Command{Workflow: "claim", Transition: "file", Actor: who,
			Payload: []byte(`{"number":"C-104` + string(rune('2'+n)) + `","who":"` + who + `","amount":` + []string{"180", "75", "2600", "940"}[n] +
				`}`)})
		chosen += "&id=" + r.Instance.String()
	}
	id := s.filed("C-1040", 420)
	s.do(id, "note", "ann", `{"note":"The photos came by post."}`)
	s.do(id, "approve", "bob", `{}`)
	s.do(id, "call", "bob", `{"note":"for the account number"}`)
	await.Receive(s.t, "the bank is asked", s.bank.asked) <- errors.New("the line is engaged")
	s.awaitCase("the attempt has failed", id, failedOnce)
	s.awaitDead()
	s.migration()
	for _, weight := range []string{"12", "30", "140"} {
		s.submit(transitions.Command{Workflow: "parcel", Transition: "fill", Payload: []byte(`{"weight":` + weight + `}`)})
	}
	s.submit(transitions.Command{Instance: id, Transition: "note", Actor: "ann", Payload: []byte(`{"note":"ask again"}`), Key: "remind",
		Reason: "she is away until then", Options: transitions.Options{NotBefore: time.Now().Add(72 * time.Hour)}})
	held := s.filed("C-1046", 310)
	s.operate(transitions.Pause, held, "the police have the file")
	require.NoError(s.t, s.Engine().Admin().PauseWorkflow(s.t.Context(), "default", "parcel", "olga", "stock-taking"))
	keeper := s.visitor(s.key("olga", everything))
	keeper.fill("/console/keys/new", "name", "till 3", "actor", "till-3", "grants", "read submit:order/place submit:order/pay").want(201)
	keeper.fill("/console/keys/new", "name", "warehouse", "actor", "depot", "grants", "read:order submit:order/ship stream").want(201)
	ref := "?" + queryOf(s.flight(stuck))
	of := "/instances/" + id.String()
	return map[string]string{"overview": "/", "instances": "/instances?workflow=claim&order=updated", "instance": of, "instance-then": of +
		"?version=2",
		"transition": "/workflows/claim/do/file", "bulk": chosen, "pause": of + "/pause",
		"command": "/commands" + ref, "commands": "/commands", "paused": "/paused",
		"new-migration": "/migrations/new?workflow=parcel&from=1&to=2&try=1",
		"stuck":         "/stuck", "settle": "/stuck/resolve" + ref, "sinks": "/sinks", "sink": "/sinks/bookkeeping",
		"messages": "/messages", "log": "/log?workflow=claim", "workflows": "/workflows", "migrations": "/migrations",
		"workflow": "/workflows/claim", "keys": "/keys",
		"new-key": "/keys/new",
		"you":     "/me?can=submit:order/pay"}
}

// shrink reduces a picture to the 256 colours that most of its pixels have.
func shrink(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	whole, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return err
	}
	bounds, counts := whole.Bounds(), map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(whole.At(x, y)).(color.RGBA)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return cmp.Compare(counts[b], counts[a]) })
	var palette color.Palette
	for _, c := range colours[:min(len(colours), 256)] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(bounds, palette)
	draw.Draw(small, bounds, whole, bounds.Min, draw.Src)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}
