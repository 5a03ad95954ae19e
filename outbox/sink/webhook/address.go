package webhook

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

type guard struct{ private []netip.Prefix }

// control implements [net.Dialer.ControlContext], which receives the resolved address before
// dialling.
func (g guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("invalid address %s: %w", address, err)
	}
	addr := a.Addr().Unmap()
	listed := func(p netip.Prefix) bool { return p.Contains(addr) }
	if public(addr) || slices.ContainsFunc(g.private, listed) {
		return nil
	}
	return fmt.Errorf("%s is neither a public address nor listed in Private", addr)
}

// Non-public ranges within public ones, from the registries of special-purpose addresses (RFC
// 6890): private and shared networks, loopback, link-local (cloud metadata), multicast,
// documentation, benchmarks, and ranges that translate to one of these.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

var (
	unicast = netip.MustParsePrefix("2000::/3")     // globally assigned IPv6
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // an IPv4 address in its last 4 bytes (RFC 6052)
)

func public(a netip.Addr) bool {
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if !a.IsValid() || a.Zone() != "" || a.Is6() && !unicast.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}
