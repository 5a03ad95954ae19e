package inspect

// Version is how a version of a workflow stands.
type Version struct {
	Workflow string
	Version  int
	Begins   bool            // new instances begin with it, where a node knows it
	Said     bool            // an operator has said that they begin with it, or with this one at most
	Counts   []InstanceCount // of its instances, by state, of all tenants
	Open     int64           // of them: those that are in no final state
	Exact    bool            // both are counted, and not estimated
	Knowing  []string        // the nodes that are alive and know it
	Lacking  []string        // those that do not
}
