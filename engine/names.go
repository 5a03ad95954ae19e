package engine

import (
	"sync"

	"github.com/google/uuid"
)

// names remembers the workflow of instances, which never changes. It keeps two
// generations: when the young one is full it becomes the old one, and what is
// used again is young again. So it holds the most recent instances in bounded
// memory.
type names struct {
	mu         sync.Mutex
	young, old map[instanceKey]string
}

type instanceKey struct {
	tenant string
	id     uuid.UUID
}

const namesGeneration = 32_768

func newNames() *names { return &names{young: map[instanceKey]string{}} }

func (n *names) get(tenant string, id uuid.UUID) (string, bool) {
	k := instanceKey{tenant, id}
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.young[k]
	if !ok {
		if name, ok = n.old[k]; ok {
			n.add(k, name)
		}
	}
	return name, ok
}

func (n *names) put(tenant string, id uuid.UUID, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.add(instanceKey{tenant, id}, name)
}

func (n *names) add(k instanceKey, name string) {
	if len(n.young) >= namesGeneration {
		n.young, n.old = map[instanceKey]string{}, n.young
	}
	n.young[k] = name
}
