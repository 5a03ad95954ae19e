package service

import (
	"net"
	"net/netip"

	"github.com/pawlhq/pawl/app/usage"
)

// authenticated reports whether callers have to prove who they are. It is the one place
// that says so: with it, any address is listened on.
func (c Config) authenticated() bool { return c.Auth.Configured() }

// checkAddress refuses an address that other machines could reach without authentication of callers, and one without TLS unless a proxy
// provides it. Error: *usage.Error.
func checkAddress(address string, n Network, authenticated bool) error {
	own, err := onThisMachine(address)
	switch {
	case err != nil:
		return err
	case own:
		return nil
	case !authenticated:
		return usage.Errorf("refusing to listen on %s: callers are not authenticated, so only this machine may connect; "+
			"say whose credentials are taken (--auth), or listen on a loopback address such as %s", address, DefaultAddress)
	case !n.encrypted() && !n.PlainHTTP:
		return usage.Errorf("refusing to listen on %s without TLS: whoever is on the way could read the callers' credentials and use them; "+
			"give a certificate (--tls-cert and --tls-key), or say that a proxy before this address ends TLS (--plain-http)", address)
	}
	return nil
}

// onThisMachine reports whether only this machine reaches an address. A host name other
// than localhost is taken for one that others reach: what it means is not for us to know.
func onThisMachine(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, usage.Errorf("the address %q is not host:port", address)
	}
	if host == "localhost" {
		return true, nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback(), nil
}
