package api_test

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
)

func TestLists_FiltersAndOrder(t *testing.T) {
	s := newServer(t)
	var between time.Time
	var ids []uuid.UUID
	for i := range 6 {
		a := s.post("/v1/workflows/parcel/pack", strconv.Itoa(i), `{"to":"Wien","weight":1}`)
		a.want(t, 201)
		ids = append(ids, read[wire.Instance](t, s.get(a.header.Get("Location"))).ID)
		if i == 2 {
			between = read[wire.Instance](t, s.get(a.header.Get("Location"))).CreatedAt.Add(time.Microsecond)
		}
	}
	for i, id := range ids[:2] {
		s.post("/v1/instances/"+id.String()+"/send", "s"+strconv.Itoa(i), `{}`).want(t, 200)
	}
	at := url.QueryEscape(between.Format(time.RFC3339Nano))
	for query, want := range map[string]int{
		"?open=true":                                     4,
		"?open=false":                                    2,
		"?workflow=parcel&definition=1":                  6,
		"?workflow=parcel&definition=2":                  0,
		"?state=sent&state=packed":                       6,
		"?state=lost&state=sent":                         2,
		"?created_before=" + at:                          3,
		"?created_after=" + at:                           3,
		"?updated_before=" + at:                          1,
		"?updated_after=" + at + "&open=false":           2,
		"?created_before=" + at + "&order=updated":       3,
		"?attr.to=Wien&order=updated&state=sent&limit=1": 1,
	} {
		a := s.get("/v1/instances" + query)
		a.want(t, 200)
		assert.Lenf(t, read[wire.InstancePage](t, a).Instances, want, "%q instances", query)
	}
	want := []uuid.UUID{ids[1], ids[0], ids[5], ids[4], ids[3], ids[2]}
	for cursor := ""; ; {
		page := read[wire.InstancePage](t, s.get("/v1/instances?order=updated&limit=4"+cursor))
		for _, i := range page.Instances {
			require.Truef(t, len(want) != 0 && i.ID == want[0], "%s is not the next of %v", i.ID, want)
			want = want[1:]
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
	}
	assert.Emptyf(t, want, "%v are missing", want)
}

func TestCountsSayHowExactTheyAre(t *testing.T) {
	s := newServer(t)
	first := s.packed("1")
	s.packed("1")
	s.post("/v1/instances/"+first.String()+"/send", "s", `{}`).want(t, 200)
	s.post("/v1/workflows/parcel/pack", "o", `{"to":"Wien","weight":1}`, "Pawl-Tenant", "other").want(t, 201)
	for query, want := range map[string]struct {
		total int64
		kinds int
	}{
		"":                               {2, 2},
		"?workflow=parcel&definition=1":  {2, 2},
		"?open=true":                     {1, 1},
		"?state=sent&state=lost":         {1, 1},
		"?state=lost":                    {0, 0},
		"?all_tenants=true&state=packed": {2, 1},
	} {
		a := s.get("/v1/counts" + query)
		a.want(t, 200)
		c := read[inspect.Counts](t, a)
		assert.Truef(t, c.Total == want.total && len(c.Counts) == want.kinds && c.Counts != nil && c.Exact, "%q: %+v", query, c)
		for _, k := range c.Counts {
			assert.Truef(t, k.Workflow == "parcel" && k.Definition == 1 && k.Exact, "%q: %+v", query, k)
		}
	}
}

// Scheduled commands of an instance change without a new version, so the entity tag differs. The old tag still works with If-Match.
func TestAnInstanceShowsWhatIsScheduledOnIt(t *testing.T) {
	s := newServer(t)
	address := "/v1/instances/" + s.packed("1").String()
	bare := s.get(address)
	due := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	s.post(address+"/send", "later", `{"via":"ship"}`, "Pawl-Not-Before", due.Format(time.RFC3339), "Pawl-Actor", "ann").want(t, 202)
	a := s.get(address, "If-None-Match", bare.header.Get("ETag"))
	a.want(t, 200)
	v := read[wire.InstanceView](t, a)
	if len(v.Scheduled) != 1 || v.Scheduled[0].Key != "later" || v.Scheduled[0].Transition != "send" || v.Scheduled[0].Actor != "ann" ||
		!v.Scheduled[0].Due.Equal(due) || v.Timers != nil || v.Effects != nil || v.More != nil || v.Version != 1 {
		t.Errorf("the view is %+v", v)
	}
	tag := a.header.Get("ETag")
	again := s.get(address, "If-None-Match", tag)
	assert.Equal(t, http.StatusNotModified, again.status, "the same again")
	s.post(address+"/stamp", "st", `{"price":1}`, "If-Match", tag).want(t, 200)
	s.post(address+"/stamp", "st2", `{"price":1}`, "If-Match", tag).want(t, 412)
}
