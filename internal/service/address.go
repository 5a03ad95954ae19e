package service

import (
	"net"
	"net/netip"

	"github.com/pawlhq/pawl/internal/usage"
)

// checkAddress refuses an address that other machines could reach. A host name
// other than localhost is refused too: what it means is not for us to know.
func checkAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usage.Errorf("the address %q is not host:port", address)
	}
	if host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return usage.Errorf("refusing to listen on %s: there is no authentication yet, so only this machine may connect; "+
		"listen on a loopback address such as %s, and let a proxy that authenticates stand before it", address, DefaultAddress)
}
