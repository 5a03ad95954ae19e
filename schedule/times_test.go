package schedule_test

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/schedule"
)

func times(t testing.TB, s schedule.Spec, calendars ...schedule.Calendars) *schedule.Times {
	t.Helper()
	var c schedule.Calendars
	if len(calendars) > 0 {
		c = calendars[0]
	}
	got, err := s.Times(c)
	require.NoError(t, err)
	return got
}

// list returns nominal times as texts in the zone of the spec.
func list(t testing.TB, s schedule.Spec, after string, n int, calendars ...schedule.Calendars) []string {
	t.Helper()
	zone, err := time.LoadLocation(s.Zone)
	require.NoError(t, err)
	at, err := time.Parse(time.RFC3339, after)
	require.NoError(t, err)
	c := times(t, s, calendars...)
	var texts []string
	for range n {
		if at = c.Next(at); at.IsZero() {
			break
		}
		texts = append(texts, at.In(zone).Format("2006-01-02T15:04:05-07"))
	}
	return texts
}

func TestNext(t *testing.T) {
	berlin := "Europe/Berlin"
	holidays := schedule.Calendars{"de": func(d time.Time) bool { return schedule.Weekdays(d) && d.Format("01-02") != "05-01" }}
	for name, c := range map[string]struct {
		spec  schedule.Spec
		after string
		want  []string
	}{
		"day of month or day of week": {schedule.Spec{Cron: "0 0 13 * 5"}, "2026-03-01T00:00:00Z",
			[]string{"2026-03-06T00:00:00+00", "2026-03-13T00:00:00+00", "2026-03-20T00:00:00+00", "2026-03-27T00:00:00+00", "2026-04-03T00:00:00+00",
				"2026-04-10T00:00:00+00", "2026-04-13T00:00:00+00"}},
		"day of month and day of week": {schedule.Spec{Cron: "0 0 13 * 5", Days: "both"}, "2026-01-01T00:00:00Z",
			[]string{"2026-02-13T00:00:00+00", "2026-03-13T00:00:00+00", "2026-11-13T00:00:00+00"}},
		"29 February": {schedule.Spec{Cron: "0 0 29 2 *"}, "2097-01-01T00:00:00Z", []string{"2104-02-29T00:00:00+00"}},
		"29 February, a Sunday": {schedule.Spec{Cron: "0 0 29 2 0", Days: "both"}, "2092-01-01T00:00:00Z",
			[]string{"2128-02-29T00:00:00+00"}},
		"gap, shifted": {schedule.Spec{Cron: "30 2 * * *", Zone: berlin}, "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T02:30:00+01", "2026-03-29T03:30:00+02", "2026-03-30T02:30:00+02"}},
		"gap, skipped": {schedule.Spec{Cron: "30 2 * * *", Zone: berlin, Gap: "skip"}, "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T02:30:00+01", "2026-03-30T02:30:00+02"}},
		"fold, once": {schedule.Spec{Cron: "30 2 * * *", Zone: berlin}, "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:30:00+02", "2026-10-26T02:30:00+01"}},
		"fold, twice": {schedule.Spec{Cron: "30 2 * * *", Zone: berlin, Fold: "both"}, "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:30:00+02", "2026-10-25T02:30:00+01", "2026-10-26T02:30:00+01"}},
		"fold, every half hour": {schedule.Spec{Cron: "*/30 * * * *", Zone: berlin}, "2026-10-24T23:50:00Z",
			[]string{"2026-10-25T02:00:00+02", "2026-10-25T02:30:00+02", "2026-10-25T02:00:00+01", "2026-10-25T02:30:00+01",
				"2026-10-25T03:00:00+01"}},
		"fold, two times in it": {schedule.Spec{Cron: "0,30 2 * * *", Zone: berlin}, "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:00:00+02", "2026-10-25T02:30:00+02", "2026-10-26T02:00:00+01"}},
		"interval": {schedule.Spec{Every: 86400, From: time.Date(2026, 1, 1, 9, 0, 0, 500, time.UTC)}, "2025-12-30T00:00:00Z",
			[]string{"2026-01-01T09:00:00+00", "2026-01-02T09:00:00+00"}},
		"until": {schedule.Spec{Cron: "@daily", Until: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)}, "2026-01-01T12:00:00Z",
			[]string{"2026-01-02T00:00:00+00"}},
		"first working day": {schedule.Spec{Cron: "0 9 * * *", Working: &schedule.Working{Calendar: "de", Nth: 1}}, "2026-05-01T00:00:00Z",
			[]string{"2026-05-04T09:00:00+00", "2026-06-01T09:00:00+00"}},
		"last working day": {schedule.Spec{Cron: "0 9 * 5,6 *", Working: &schedule.Working{Nth: -1}}, "2026-05-01T00:00:00Z",
			[]string{"2026-05-29T09:00:00+00", "2026-06-30T09:00:00+00"}},
		"rolled forward": {schedule.Spec{Cron: "0 9 1 * *", Working: &schedule.Working{Calendar: "de", Roll: "next"}}, "2026-04-15T00:00:00Z",
			[]string{"2026-05-04T09:00:00+00", "2026-06-01T09:00:00+00"}},
		"rolled back": {schedule.Spec{Cron: "0 9 1 8 *", Working: &schedule.Working{Roll: "previous"}}, "2026-07-15T00:00:00Z",
			[]string{"2026-07-31T09:00:00+00"}},
		"left out": {schedule.Spec{Cron: "0 9 1 * *", Working: &schedule.Working{Calendar: "de"}}, "2026-04-15T00:00:00Z",
			[]string{"2026-06-01T09:00:00+00"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, list(t, c.spec, c.after, len(c.want), holidays))
		})
	}
}

func TestTimesRefusesSpecs(t *testing.T) {
	for name, s := range map[string]schedule.Spec{
		"nothing": {}, "both": {Cron: "@daily", Every: 5}, "zone": {Cron: "@daily", Zone: "Mars/Olympus"}, "local": {Cron: "@daily", Zone: "Local"},
		"expression": {Cron: "61 * * * *"}, "zone in the expression": {Cron: "TZ=UTC"}, "@every": {Cron: "@every 1h"},
		"never": {Cron: "0 0 31 2 *"}, "calendar": {Cron: "@daily", Working: &schedule.Working{Calendar: "x"}},
		"nth with days": {Cron: "0 0 1 * *", Working: &schedule.Working{Nth: 1}}, "interval with a zone": {Every: 5, Zone: "UTC"},
		"bounds": {Cron: "@daily", From: time.Unix(5, 0), Until: time.Unix(5, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Times(nil)
			assert.Error(t, err)
		})
	}
}

// zones returns the names of all zones of Go's database.
func zones(t testing.TB) []string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	z, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = z.Close() })
	var names []string
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	require.Greater(t, len(names), 400)
	return names
}

// oracle returns the nominal times of a daily run in a window, found by reading a clock in the zone each minute.
func oracle(zone *time.Location, begin, end time.Time, hour, minute int, gap, fold string) []time.Time {
	var found []time.Time
	seen := map[string]bool{}
	for at := begin; at.Before(end); at = at.Add(time.Minute) {
		before, local := at.Add(-time.Minute).In(zone), at.In(zone)
		_, was := before.Zone()
		_, is := local.Zone()
		if jump := is - was; jump > 0 && gap != "skip" { // the times that the clock has just skipped
			for m := range jump / 60 {
				skipped := at.UTC().Add(time.Duration(was)*time.Second + time.Duration(m)*time.Minute)
				if skipped.Hour() == hour && skipped.Minute() == minute {
					found = append(found, at.Add(time.Duration(m)*time.Minute))
				}
			}
		}
		if local.Hour() != hour || local.Minute() != minute {
			continue
		}
		day := local.Format(time.DateOnly)
		if fold == "both" || !seen[day] {
			found = append(found, at)
		}
		seen[day] = true
	}
	slices.SortFunc(found, time.Time.Compare)
	return slices.CompactFunc(found, time.Time.Equal)
}

func TestNext_EveryTransitionOfAllZones(t *testing.T) {
	begin, end := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC)
	checked, same := 0, map[string]bool{} // zones that agree in all transitions are checked once
	for _, name := range zones(t) {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		var changes []time.Time
		for _, next := begin.In(zone).ZoneBounds(); !next.IsZero() && next.Before(end); _, next = next.ZoneBounds() {
			changes = append(changes, next)
		}
		var key strings.Builder
		for _, c := range changes {
			key.WriteString(c.Add(-1).Format(time.RFC3339) + c.Format(time.RFC3339))
		}
		if same[key.String()] {
			continue
		}
		same[key.String()] = true
		for _, change := range changes {
			checked++
			checkAround(t, name, zone, change)
		}
	}
	t.Logf("%d transitions", checked)
	assert.Greater(t, checked, 1000)
}

// checkAround compares the runs around a change of the offset with the oracle, for times before, in and after the gap or the fold.
func checkAround(t *testing.T, name string, zone *time.Location, change time.Time) {
	t.Helper()
	from, to := change.Add(-5*time.Hour).Truncate(time.Minute), change.Add(5*time.Hour).Truncate(time.Minute)
	before, after := change.Add(-1).In(zone), change.In(zone)
	shown := change.UTC().Add(time.Duration(offset(before)) * time.Second) // on a clock that does not change
	for _, clock := range []time.Time{shown.Add(-40 * time.Minute), shown, shown.Add(20 * time.Minute), shown.Add(time.Hour),
		shown.Add(100 * time.Minute), change.UTC().Add(time.Duration(offset(after)) * time.Second)} {
		for _, gap := range []string{"shift", "skip"} {
			for _, fold := range []string{"first", "both"} {
				s := schedule.Spec{Zone: name, Gap: gap, Fold: fold,
					Cron: clock.Format("4 15") + " * * *"}
				want := oracle(zone, from, to, clock.Hour(), clock.Minute(), gap, fold)
				var got []time.Time
				c := times(t, s)
				for at := c.Next(from.Add(-1)); at.Before(to); at = c.Next(at) {
					got = append(got, at)
				}
				require.Truef(t, slices.EqualFunc(want, got, time.Time.Equal), "%s at %s, %q, gap %s, fold %s: want %v, got %v",
					name, change, s.Cron, gap, fold, want, got)
			}
		}
	}
}

func offset(at time.Time) int {
	_, seconds := at.Zone()
	return seconds
}

func TestDelay(t *testing.T) {
	c := times(t, schedule.Spec{Cron: "@hourly", Jitter: 600})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, c.Delay("a", at), c.Delay("a", at.In(time.FixedZone("", 3600))))
	assert.NotEqual(t, c.Delay("a", at), c.Delay("b", at))
	for range 100 {
		next := c.Next(at)
		assert.Equal(t, at.Add(time.Hour), next, "the delay moves the next run")
		assert.Less(t, c.Delay("a", at), 10*time.Minute)
		at = next
	}
}

func TestZoneData(t *testing.T) {
	assert.Contains(t, schedule.ZoneData(), "tzdata ")
}
