package api

import (
	"sync"

	"github.com/pawlhq/pawl/workflow"
)

// openRequests bounds how many requests and streams each tenant has open on this node.
type openRequests struct {
	most int

	mu   sync.Mutex
	open map[string]int // of tenants that have any
}

// newOpenRequests returns nil where there is no limit.
func newOpenRequests(most int) *openRequests {
	if most == 0 {
		return nil
	}
	return &openRequests{most: most, open: map[string]int{}}
}

// enter counts a request, which has to leave. Error: RateLimited.
func (o *openRequests) enter(tenant string) error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[tenant] >= o.most {
		return workflow.Errorf(workflow.RateLimited, "the tenant has %d requests and streams open on this node, which is the most", o.most)
	}
	o.open[tenant]++
	return nil
}

func (o *openRequests) leave(tenant string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[tenant]--; o.open[tenant] == 0 {
		delete(o.open, tenant)
	}
}
