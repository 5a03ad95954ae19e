package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/inspect"
)

// maxShown is how many timers, scheduled and stuck commands and effects an instance is shown
// with at most, of each.
const maxShown = inspect.MaxWaiting

// InstanceView is an instance by itself: with its armed timers, with what is
// scheduled on it, with what a later failure would undo, and what waits for an operator.
type InstanceView struct {
	Instance
	Timers    []inspect.Timer            `json:"timers,omitempty"`    // the next first
	Scheduled []inspect.ScheduledCommand `json:"scheduled,omitempty"` // what callers asked for later, the next first
	Stuck     []inspect.StuckCommand     `json:"stuck,omitempty"`     // what of it waits for an operator, an undo too
	// Effects are the commands whose effects would be undone, in that order: the newest first.
	Effects []CommandRef `json:"effects,omitempty"`
	More    []string     `json:"more,omitempty"` // the lists of these that have only their first hundred
}

func viewOf(v *inspect.View) InstanceView {
	out := InstanceView{Instance: instanceOf(&v.Instance), Timers: v.Timers, Scheduled: v.Scheduled, Stuck: v.Stuck}
	for _, e := range slices.Backward(v.Links.Effects) {
		if len(out.Effects) == maxShown {
			break
		}
		out.Effects = append(out.Effects, *refOf(&e.CommandRef))
	}
	for _, list := range []struct {
		name string
		more bool
	}{{"timers", v.MoreTimers}, {"scheduled", v.MoreScheduled}, {"stuck", v.MoreStuck}, {"effects", len(v.Links.Effects) > maxShown}} {
		if list.more {
			out.More = append(out.More, list.name)
		}
	}
	return out
}

// sendView shows an instance. What waits on it comes and goes without a new
// version; so it is a part of the tag.
func sendView(w http.ResponseWriter, r *http.Request, v *inspect.View) error {
	out := viewOf(v)
	body, err := render(out)
	if err != nil {
		return err
	}
	tag := versionTag(v.Version)
	if len(out.Timers)+len(out.Scheduled)+len(out.Stuck) > 0 {
		tag = waitingTag(v.Version, body)
	}
	sendTagged(w, r, tag, body)
	return nil
}

// waitingTag is the entity tag of an instance that something waits on.
func waitingTag(version int64, body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + strconv.FormatInt(version, 10) + "." + hex.EncodeToString(sum[:waitingBytes]) + `"`
}

// waitingBytes is how much of a hash a tag has.
const waitingBytes = 8
