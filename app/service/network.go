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

// Network is how a Service is reached.
type Network struct {
	// CertFile and KeyFile are the files of the certificate for TLS and of its key, in
	// PEM. They are read again when they change; what cannot be used is told in the log
	// and counted, and the old certificate stays. "" is HTTP without TLS.
	CertFile, KeyFile string

	// PlainHTTP serves without TLS on an address that other machines reach, because a
	// proxy before it ends TLS.
	PlainHTTP bool

	// Proxies are networks whose word is taken on who asks, for which host, and whether
	// over TLS: Forwarded (RFC 7239) or X-Forwarded-For, -Host and -Proto. Each of them
	// has to set or remove these headers.
	Proxies []netip.Prefix

	// PublicURL is where clients reach the service through a proxy, such as "https://example.com/pawl"; see [api.Config].
	PublicURL string

	// Origins are those whose pages are served, such as "https://shop.example.com"; see
	// [api.Config]. None.
	Origins []string

	// MaxWait is the longest that a request may wait for something new ("Prefer: wait=N"); proxies have to allow more. Default
	// [api.DefaultWait].
	MaxWait time.Duration

	// Connections is how many there may be at once. More wait, for which those that do
	// nothing are closed. Default 10,000, or as many as take an eighth of the memory limit of the process (GOMEMLIMIT).
	Connections int

	// AddressConnections is the maximum number of connections of one remote address that is not in Proxies; more are closed at once. Defaults
	// to half of Connections.
	AddressConnections int

	// TenantRequests is the maximum number of open requests and streams of each tenant on this node; a credential may have half as many, and
	// more are refused with RateLimited. Those of operators are not counted. Zero means no limit.
	TenantRequests int
}

// encrypted reports whether it is served over TLS.
func (n Network) encrypted() bool { return n.CertFile != "" }

// check refuses what cannot be. Error: *usage.Error.
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

// listening is what the server is told.
func (c Config) listening() server.Config {
	config := server.Config{Address: c.Address, Log: c.Log, Proxies: c.Network.Proxies,
		Limits: server.Limits{Connections: cmp.Or(c.Network.Connections, connectionsIn(memoryLimit())), PerAddress: c.Network.AddressConnections}}
	if n := c.Network; n.encrypted() {
		config.TLS = &server.Certificate{Cert: n.CertFile, Key: n.KeyFile}
	}
	return config
}

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
		return usage.Errorf("refusing to listen on %s without TLS: the callers' credentials could be read on the network; "+
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

// perConnection is about how many bytes an idle connection takes, with TLS.
const perConnection = 40 << 10

// connectionsIn is how many connections take an eighth of the process's memory limit (GOMEMLIMIT): at most 10,000, which is also the
// number without a limit.
func connectionsIn(limit int64) int {
	if limit == math.MaxInt64 {
		return 10_000
	}
	return int(min(max(limit/8/perConnection, 100), 10_000))
}

// memoryLimit is the process's.
func memoryLimit() int64 { return debug.SetMemoryLimit(-1) }

// NoConsole as Config.Console serves none.
const NoConsole = "off"

// checkConsole refuses a path that cannot be. Error: *usage.Error.
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

// addConsole serves the console in addition to the API, which it calls in the name of its users.
func (s *Service) addConsole(c *api.Config) error {
	if s.config.Console == NoConsole {
		return nil
	}
	asked := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.api.ServeHTTP(w, r) }) // which is made later
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
