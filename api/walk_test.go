package api_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/tables"
)

// walked is where the tests of this package have been: the routes, and the statuses that they were answered with.
var walked walk

type walk struct {
	mu   sync.Mutex
	seen map[string]bool // "GET /v1/me 200"
}

func (w *walk) add(x *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[x.pattern+" "+strconv.Itoa(x.status)] = true
}

// notWalked are answers of the document that no test of this package gets, each with the reason.
var notWalked = map[string]string{
	"GET /healthz 500":         "nothing in it can fail",
	"GET /docs 500":            "nothing in it can fail",
	"GET /docs/page.js 500":    "nothing in it can fail",
	"GET /docs/rapidoc.js 500": "nothing in it can fail",

	"GET /docs 429": crowded, "GET /docs/page.js 429": crowded, "GET /docs/rapidoc.js 429": crowded,

	"POST /v1/inbox/{consumer} 202": takesTime, "POST /v1/inbox/{consumer} 403": takesTime, "POST /v1/inbox/{consumer} 408": takesTime,
	"POST /v1/ops/inbox/retry 202": takesTime, "POST /v1/ops/inbox/retry 408": takesTime,
	"POST /v1/ops/inbox/retry 410": "it takes a message that its consumer has done in SQL, long ago: what is done here leaves the list",

	"POST /v1/ops/instances/{id}/pause 409": inSQL, "POST /v1/ops/workflows/{workflow}/keys/{business_key}/pause 409": inSQL,
	"POST /v1/ops/instances/{id}/resume 409": inSQL, "POST /v1/ops/workflows/{workflow}/keys/{business_key}/resume 409": inSQL,
}

const (
	takesTime = "no workflow of these tests has a transition that takes messages, and time or a role"
	crowded   = "it takes hundreds of requests at once, which fill the share of their address"
	inSQL     = "it takes a key that somebody holds in SQL for the hash of this very operation"
)

// missing returns the answers of the document, by path, method and status, that no test got and that are not excepted; and exceptions
// without an answer.
func (w *walk) missing() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	documented := map[string]bool{}
	for _, r := range api.Routes() {
		for _, a := range r.Answers {
			documented[fmt.Sprintf("%s %s %d", r.Method, r.Path, a.Status)] = true
		}
		for _, c := range r.Codes {
			documented[fmt.Sprintf("%s %s %d", r.Method, r.Path, c.Info().Status)] = true
		}
	}
	for _, one := range slices.Sorted(maps.Keys(documented)) {
		if excepted := notWalked[one] != ""; !w.seen[one] && !excepted {
			all = append(all, one+": no test gets this answer, which the document has")
		} else if w.seen[one] && excepted {
			all = append(all, one+": it is excepted from the walk, and was seen")
		}
	}
	for one := range notWalked {
		if !documented[one] {
			all = append(all, one+": it is excepted from the walk, and the document does not have it")
		}
	}
	return all
}

// everything reports whether all tests of the package have run.
func everything() bool {
	for _, name := range []string{"run", "skip", "list", "fuzz"} {
		if flag.Lookup("test."+name).Value.String() != "" {
			return false
		}
	}
	return flag.Lookup("test.count").Value.String() != "0"
}

// wantWalked ends the program with a failure unless each answer of the document was seen. (That the document has what the table of routes
// has is another test's.)
func wantWalked() {
	if missing := walked.missing(); everything() && len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "--- FAIL: the walk of every path, method and status of the document\n    %s\nFAIL\n",
			strings.Join(missing, "\n    "))
		os.Exit(1)
	}
}

func TestMain(m *testing.M) {
	tables.Main(m)
	wantWalked()
}
