package cli

import (
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/internal/service"
)

// addNetwork adds the flags that say how a service is reached.
func addNetwork(c *cobra.Command, n *service.Network) {
	own := c.Flags()
	own.StringVar(&n.CertFile, "tls-cert", "",
		"file of the TLS certificate, with those that lead to its root, in PEM; read again when it changes")
	own.StringVar(&n.KeyFile, "tls-key", "", "file of its key, in PEM")
	own.BoolVar(&n.PlainHTTP, "plain-http", false,
		"serve without TLS on an address that other machines reach, because a proxy before it ends TLS")
	own.IntVar(&n.Connections, "max-connections", 10_000,
		"how many connections there may be at once; more wait, and those that do nothing are closed for them")
	own.IntVar(&n.AddressConnections, "max-address-connections", 0,
		"how many of them one remote address may have; by default half of them")
	own.IntVar(&n.TenantRequests, "max-tenant-requests", 0,
		"how many requests and streams each tenant may have open on this node; 0 is no limit")
}
