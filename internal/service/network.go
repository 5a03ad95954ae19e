package service

import (
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/usage"
)

// Network is how a Service is reached.
type Network struct {
	// Connections is how many there may be at once. More wait, for which those that do
	// nothing are closed. Default 10,000.
	Connections int

	// AddressConnections is how many of them one remote address may have; more are
	// closed at once. Default half of Connections.
	AddressConnections int

	// TenantRequests is how many requests and streams each tenant may have open on this
	// node; more are refused with RateLimited. 0 is no limit.
	TenantRequests int
}

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
	return nil
}

// listening is what the server is told.
func (c Config) listening() server.Config {
	return server.Config{Address: c.Address, Log: c.Log,
		Limits: server.Limits{Connections: c.Network.Connections, PerAddress: c.Network.AddressConnections}}
}
