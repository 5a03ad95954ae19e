package console

import (
	"maps"
	"slices"
	"strings"
)

// Actions are the paths of all that can be done, below the console's; one that names its action is there once for each.
func Actions() (all []string) {
	named := map[string][]string{
		"/instances/{id}/{action}":         names(instancePauses),
		"/workflows/{workflow}/{action}":   names(workflowPauses),
		"/migrations/{migration}/{action}": names(migrationChanges),
		"/stuck/{action}":                  names(settlements),
		"/sinks/{sink}/{action}":           names(sinkChanges),
		"/messages/{action}":               names(messageChanges),
		"/keys/{key}/{action}":             names(keyChanges),
	}
	for _, one := range actions {
		if !strings.Contains(one.path, "{action}") {
			all = append(all, one.path)
			continue
		}
		if len(named[one.path]) == 0 {
			panic("console: which actions does " + one.path + " have?")
		}
		for _, name := range named[one.path] {
			all = append(all, strings.Replace(one.path, "{action}", name, 1))
		}
	}
	return all
}

func names(of operations) []string { return slices.Sorted(maps.Keys(of)) }

// Pages are the paths of all pages, below the console's.
func Pages() (all []string) {
	for _, one := range pages {
		all = append(all, one.path)
	}
	return all
}
