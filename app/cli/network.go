package cli

import (
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/app/usage"
)

// addNetwork adds the flags that say how a service is reached.
func addNetwork(c *cobra.Command, n *service.Network) {
	own := c.Flags()
	own.StringVar(&n.CertFile, "tls-cert", "",
		"file of the TLS certificate, with those that lead to its root, in PEM; read again when it changes")
	own.StringVar(&n.KeyFile, "tls-key", "", "file of its key, in PEM")
	own.BoolVar(&n.PlainHTTP, "plain-http", false,
		"serve without TLS on an address that other machines reach, because a proxy before it ends TLS")
	own.StringVar(&n.PublicURL, "public-url", "",
		"where clients reach this service through a proxy, such as https://example.com/pawl; its path prefixes all addresses")
	own.StringSliceVar(&n.Origins, "origin", nil,
		"origins whose pages a browser lets read the answers (CORS), such as https://shop.example.com; none by default")
	own.DurationVar(&n.MaxWait, "max-wait", api.DefaultWait,
		"how long a request may wait for something new (Prefer: wait); a proxy has to wait longer for an answer")
	own.IntVar(&n.Connections, "max-connections", 0,
		"how many connections there may be at once; more wait, and those that do nothing are closed for them; by default 10,000, or as many "+
			"as take an eighth of the memory limit of the process")
	own.IntVar(&n.AddressConnections, "max-address-connections", 0,
		"how many of them one remote address may have; by default half of them")
	own.IntVar(&n.TenantRequests, "max-tenant-requests", 0,
		"how many requests and streams each tenant may have open on this node, and a credential half as many; those of operators are not "+
			"counted; 0 is no limit")
}

// networksOf are those that a flag names.
func networksOf(flag string, texts []string) (list []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, usage.Errorf("%s %s is not a network such as 10.0.0.0/8", flag, text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}
