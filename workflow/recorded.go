package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/internal/schemagen"
)

// Prefixes of paths that are not members of the data: attributes, and results of activities.
const (
	attributeMember = "attribute "
	resultMember    = "result "
)

// DataChanged says that this build means what would be refused otherwise: that members which are
// recorded for this version of the workflow are not read any more, or as another type. Each is
// named by its path as in RFC 6901, where "*" is every entry of a map or an array, such as
// "/lines/*/discount", and within a type that contains itself by the path where that begins; an attribute as
// "attribute region"; a member of an activity's result as "result charge/number". A member that the data type does not
// have any more is dropped from an instance with its next transition. To read what is stored in one form as another is
// for the member's type, by its own UnmarshalJSON.
func (d *Definition[D]) DataChanged(members ...string) *Definition[D] {
	d.changed = append(d.changed, members...)
	return d
}

// checkChanged looks for what cannot be the path of a member.
func (d *Definition[D]) checkChanged(m *Mistakes) {
	for _, path := range d.changed {
		if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, attributeMember) && !strings.HasPrefix(path, resultMember) {
			m.add("DataChanged names %q, which is neither a path that begins with \"/\" nor %q or %q and a name", path, attributeMember,
				resultMember)
		}
	}
}

// takeMembers adds the attributes and the members of the results of activities to those of the data.
func (d *Definition[D]) takeMembers(w *Workflow) {
	for _, a := range d.attrs {
		w.members[attributeMember+a.name] = "attribute"
	}
	for _, s := range w.Steps {
		if s.Work != nil {
			for path, kind := range s.Work.body.resultMembers() {
				w.members[w.resultOf(s)+path] = kind
			}
		}
	}
	w.gone = make(map[string]bool, len(d.changed))
	for _, path := range d.changed {
		w.gone[path] = true
	}
	for _, s := range w.Steps {
		s.gone = w.gone
	}
}

// resultOf names the result of an activity. Of several of one name it has the states that the activity leaves.
func (w *Workflow) resultOf(s *Step) string {
	if activities(w.byName[s.Name]) == 1 {
		return resultMember + s.Name
	}
	return fmt.Sprint(resultMember, s.Name, " from ", s.From)
}

// Members are the members of an instance's data, by path, each with its kind, the attributes, and the results of activities. A database
// records them for each version, so that no build loses data of another. They are not part of the hash.
func (w *Workflow) Members() map[string]string { return maps.Clone(w.members) }

// MembersHash is the hex SHA-256 of the members: builds with the same store the same.
func (w *Workflow) MembersHash() string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(w.members)) {
		_, _ = fmt.Fprintf(h, "%q %q\n", path, w.members[path]) // a hash takes all
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Unlike compares the data with the recorded members of the version. It returns those that this build lacks, and descriptions of those that
// it may be unable to read, without members that the definition declares as dropped or changed.
func (w *Workflow) Unlike(recorded map[string]string) (lacking, unreadable []string) {
	before, now := whole(recorded), whole(w.members)
	for _, root := range slices.Sorted(maps.Keys(before)) {
		lacks, cannot := schemagen.Unlike(before[root], now[root])
		say := func(list []string, found map[string]string) []string {
			for _, path := range slices.Sorted(maps.Keys(found)) {
				if !w.means(root + path) {
					list = append(list, fmt.Sprintf("%q (%s)", root+path, found[path]))
				}
			}
			return list
		}
		lacking, unreadable = say(lacking, lacks), say(unreadable, cannot)
	}
	return lacking, unreadable
}

// whole divides members into those of the data, with the attributes, which are under "", and those of each result, under its name.
func whole(members map[string]string) map[string]map[string]string {
	parts := map[string]map[string]string{}
	for path, kind := range members {
		root := ""
		if strings.HasPrefix(path, resultMember) {
			root, _, _ = strings.Cut(path, "/")
			path = strings.TrimPrefix(path, root)
		}
		if parts[root] == nil {
			parts[root] = map[string]string{}
		}
		parts[root][path] = kind
	}
	return parts
}

// means reports whether the definition says that the member, or what it is a part of, has changed.
func (w *Workflow) means(path string) bool {
	for named := range w.gone {
		if path == named || strings.HasPrefix(path, named+"/") {
			return true
		}
	}
	return false
}

// Recorded are the members that are recorded once this build has been accepted: those of before
// that it does not mean to change, and its own.
func (w *Workflow) Recorded(before map[string]string) map[string]string {
	all := maps.Clone(w.members)
	for path, kind := range before {
		if _, own := all[path]; !own && !w.means(path) {
			all[path] = kind
		}
	}
	return all
}

// KeptAttributes are the attributes of an instance after a transition: those that this build computes, and of those
// before it the ones that another build has declared for the version.
func (w *Workflow) KeptAttributes(before, computed map[string]string) map[string]string {
	kept := computed
	for name, value := range before {
		if slices.Contains(w.Attributes, name) || w.gone[attributeMember+name] {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[name] = value
	}
	return kept
}
