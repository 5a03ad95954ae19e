package service

import (
	"cmp"
	"maps"
	"math"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/server"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth/login"
	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/console"
)

// Network configures the listener of a Service.
type Network struct {
	// CertFile and KeyFile are the files of the TLS certificate and its key, in PEM. They are reloaded when they change; invalid files are
	// logged and counted, and the old certificate stays. "" means HTTP without TLS.
	CertFile, KeyFile string

	// PlainHTTP serves without TLS on an address that other machines reach, behind a proxy that terminates TLS.
	PlainHTTP bool

	// Proxies are networks of trusted proxies, which set client, host and scheme in Forwarded (RFC 7239) or X-Forwarded-For, -Host and
	// -Proto. Each proxy must set or remove these headers.
	Proxies []netip.Prefix

	// PublicURL is the URL of the service for clients of a proxy, such as "https://example.com/pawl"; see [api.Config].
	PublicURL string

	// Origins are the allowed CORS origins, such as "https://shop.example.com"; see [api.Config]. Defaults to none.
	Origins []string

	// MaxWait is the maximum time that a request waits ("Prefer: wait=N"); proxies must allow more. Defaults to [api.DefaultWait].
	MaxWait time.Duration

	// Connections is the maximum number of connections. Idle ones are closed for new ones. Defaults to 10,000, or to the number that takes an
	// eighth of the memory limit of the process (GOMEMLIMIT).
	Connections int

	// AddressConnections is the maximum number of connections of one remote address that is not in Proxies; more are closed at once. Defaults
	// to half of Connections.
	AddressConnections int

	// TenantRequests is the maximum number of open requests and streams of each tenant on this node; a credential may have half as many, and
	// more are refused with RateLimited. Those of operators are not counted. Zero means no limit.
	TenantRequests int
}

// encrypted reports whether the service uses TLS.
func (n Network) encrypted() bool { return n.CertFile != "" }

// check validates the configuration. It returns a *usage.Error.
func (n Network) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"Connections", n.Connections}, {"AddressConnections", n.AddressConnections}, {"TenantRequests", n.TenantRequests}} {
		if f.value < 0 {
			return usage.Errorf("Config.Network.%s is negative", f.name)
		}
	}
	if n.MaxWait < 0 {
		return usage.Errorf("Config.Network.MaxWait is negative")
	}
	if (n.CertFile == "") != (n.KeyFile == "") {
		return usage.Errorf("TLS needs both a certificate and its key (--tls-cert and --tls-key)")
	}
	if err := api.CheckPublicURL(n.PublicURL); err != nil {
		return usage.Errorf("Config.Network.PublicURL: %w", err)
	}
	if err := api.CheckOrigins(n.Origins); err != nil {
		return &usage.Error{Err: err}
	}
	return nil
}

// listening returns the configuration of the listener.
func (c Config) listening() server.Config {
	config := server.Config{Address: c.Address, Log: c.Log, Proxies: c.Network.Proxies,
		Limits: server.Limits{Connections: cmp.Or(c.Network.Connections, connectionsIn(memoryLimit())), PerAddress: c.Network.AddressConnections}}
	if n := c.Network; n.encrypted() {
		config.TLS = &server.Certificate{Cert: n.CertFile, Key: n.KeyFile}
	}
	return config
}

// authenticated reports whether callers need a credential. Only then may the service listen on any address.
func (c Config) authenticated() bool { return c.Auth.Configured() }

// checkAddress rejects addresses that other machines reach without authentication, or without TLS or a proxy that provides it. It returns
// a *usage.Error.
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
		return usage.Errorf("refusing to listen on %s without TLS: the callers' credentials could be read on the network; "+
			"give a certificate (--tls-cert and --tls-key), or say that a proxy before this address ends TLS (--plain-http)", address)
	}
	return nil
}

// onThisMachine reports whether only this machine reaches an address. Host names other than localhost count as reachable by others.
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

// perConnection estimates the memory of an idle TLS connection in bytes.
const perConnection = 40 << 10

// connectionsIn returns the number of connections that take an eighth of a memory limit, at most 10,000.
func connectionsIn(limit int64) int {
	if limit == math.MaxInt64 {
		return 10_000
	}
	return int(min(max(limit/8/perConnection, 100), 10_000))
}

// memoryLimit returns the memory limit of the process.
func memoryLimit() int64 { return debug.SetMemoryLimit(-1) }

// NoConsole disables the console as Config.Console.
const NoConsole = "off"

// checkConsole validates the path of the console. It returns a *usage.Error.
func (c *Config) checkConsole() error {
	if c.Console == NoConsole {
		return nil
	}
	if err := console.CheckPath(c.Console); err != nil {
		return usage.Errorf("the console: %v", err)
	}
	if own, err := onThisMachine(c.Address); err == nil && !own && c.Auth.Login != nil && c.Network.PublicURL == "" {
		return usage.Errorf("signing in to the console at the identity provider needs the address that browsers know this service by; " +
			"give it with --public-url, such as https://pawl.example.com")
	}
	if _, prefix := api.SplitPublicURL(c.Network.PublicURL); strings.HasPrefix(c.Console+"/", prefix+"/") && prefix != "" {
		return usage.Errorf("the path of the public URL, %s, is also the console's: choose another path for the console (--console)", prefix)
	}
	return nil
}

// addConsole adds the routes of the console.
func (s *Service) addConsole(c *api.Config) error {
	if s.config.Console == NoConsole {
		return nil
	}
	asked := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.api.ServeHTTP(w, r) }) // created later
	origin, prefix := api.SplitPublicURL(s.config.Network.PublicURL)
	config := console.Config{API: asked, Sessions: session.New(s.ring), Path: s.config.Console, Origin: origin,
		Prefix: prefix, Local: !s.config.Auth.Configured(), Log: s.config.Log}
	if s.config.Auth.Login != nil {
		provider, err := login.New(*s.config.Auth.Login)
		if err != nil {
			return err
		}
		config.Login = provider
	}
	pages, err := console.New(config)
	if err != nil {
		return err
	}
	routes := map[string]http.Handler{}
	maps.Copy(routes, c.Routes)
	for pattern, h := range pages.Routes() {
		if routes[pattern] != nil {
			return usage.Errorf("the program serves %q itself, where the console is: choose another path for the console (--console)", pattern)
		}
		routes[pattern] = h
	}
	c.Routes = routes
	return nil
}
