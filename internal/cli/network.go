package cli

import (
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/internal/service"
)

// addNetwork adds the flags that say how a service is reached.
func addNetwork(c *cobra.Command, n *service.Network) {
	own := c.Flags()
	own.IntVar(&n.Connections, "max-connections", 10_000,
		"how many connections there may be at once; more wait, and those that do nothing are closed for them")
	own.IntVar(&n.AddressConnections, "max-address-connections", 0,
		"how many of them one remote address may have; by default half of them")
	own.IntVar(&n.TenantRequests, "max-tenant-requests", 0,
		"how many requests and streams each tenant may have open on this node; 0 is no limit")
}
