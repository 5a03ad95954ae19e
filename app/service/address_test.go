package service

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth/login"
)

func TestOnlyLoopbackAddressesAreListenedOn(t *testing.T) {
	for address, allowed := range map[string]bool{
		"127.0.0.1:8080":          true,
		"127.8.9.10:0":            true,
		"localhost:8080":          true,
		"[::1]:8080":              true,
		"[::ffff:127.0.0.1]:8080": true,

		":8080":                  false,
		"0.0.0.0:8080":           false,
		"[::]:8080":              false,
		"192.168.0.7:8080":       false,
		"localhost.example:8080": false,
		"example.org:8080":       false,
		"127.0.0.1":              false,
		"":                       false,
	} {
		err := checkAddress(address, Network{}, false)
		assert.Equalf(t, allowed, (err == nil), "%q: %v, want allowed", address, err)
		_, ok := errors.AsType[*usage.Error](err)
		assert.Falsef(t, err != nil && !ok, "%q: %v is no usage error", address, err)
	}
}

func TestOtherAddressesNeedAuthenticationAndTLS(t *testing.T) {
	encrypted, behindProxy := Network{CertFile: "c", KeyFile: "k"}, Network{PlainHTTP: true}
	for _, tt := range []struct {
		network       Network
		authenticated bool
		want          string
	}{
		{Network{}, false, "not authenticated"},
		{encrypted, false, "not authenticated"},
		{behindProxy, false, "not authenticated"},
		{Network{}, true, "without TLS"},
		{encrypted, true, ""},
		{behindProxy, true, ""},
	} {
		err := checkAddress("0.0.0.0:8080", tt.network, tt.authenticated)
		assert.Truef(t, (tt.want != "" || err == nil) && (tt.want == "" || err != nil && strings.Contains(err.Error(), tt.want)),
			"%+v, authenticated %v: %v", tt.network, tt.authenticated, err)
		assert.NoErrorf(t, checkAddress("127.0.0.1:8080", tt.network, tt.authenticated), "%+v", tt.network)
		assert.Error(t, checkAddress("8080", tt.network, tt.authenticated), "no address is taken for one")
	}
}

func TestLoginNeedsAPublicURL(t *testing.T) {
	for _, tt := range []struct {
		address, console, public string
		want                     string
	}{
		{"0.0.0.0:8080", "/console", "", "--public-url"},
		{"0.0.0.0:8080", "/console", "https://pawl.example.com", ""},
		{"0.0.0.0:8080", NoConsole, "", ""},
		{"127.0.0.1:8080", "/console", "", ""},
	} {
		c := Config{Address: tt.address, Console: tt.console, Network: Network{PublicURL: tt.public}, Auth: Auth{Login: &login.Config{}}}
		err := c.checkConsole()
		assert.Truef(t, (tt.want != "" || err == nil) && (tt.want == "" || err != nil && strings.Contains(err.Error(), tt.want)),
			"%+v: %v", tt, err)
	}
}
