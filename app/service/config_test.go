package service

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/auth/login"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/schema"
)

func TestCheckAddress(t *testing.T) {
	encrypted, behindProxy := Network{CertFile: "c", KeyFile: "k"}, Network{PlainHTTP: true}
	for _, tt := range []struct {
		address       string
		network       Network
		authenticated bool
		want          string
	}{
		{"127.0.0.1:8080", Network{}, false, ""},
		{"127.8.9.10:0", Network{}, false, ""},
		{"localhost:8080", Network{}, true, ""},
		{"[::1]:8080", encrypted, false, ""},
		{"[::ffff:127.0.0.1]:8080", behindProxy, true, ""},
		{":8080", Network{}, false, "not authenticated"},
		{"0.0.0.0:8080", Network{}, false, "not authenticated"},
		{"[::]:8080", encrypted, false, "not authenticated"},
		{"192.168.0.7:8080", behindProxy, false, "not authenticated"},
		{"localhost.example:8080", Network{}, false, "not authenticated"},
		{"0.0.0.0:8080", Network{}, true, "without TLS"},
		{"0.0.0.0:8080", encrypted, true, ""},
		{"0.0.0.0:8080", behindProxy, true, ""},
		{"127.0.0.1", Network{}, false, "127.0.0.1"},
		{"8080", encrypted, true, "8080"},
		{"", Network{}, false, "address"},
	} {
		err := checkAddress(tt.address, tt.network, tt.authenticated)
		if tt.want == "" {
			assert.NoError(t, err, tt)
			continue
		}
		assert.ErrorAs(t, err, new(*usage.Error), tt)
		assert.ErrorContains(t, err, tt.want, tt)
	}
}

func TestConfigErrors(t *testing.T) {
	good := []signature.Secret{signature.NewSecret()}
	consumer := func(name string, c InboxConsumer) Config { return Config{Inbox: map[string]InboxConsumer{name: c}} }
	for name, c := range map[string]Config{
		"consumer without a name":   consumer("", InboxConsumer{Secrets: good}),
		"consumer without secrets":  consumer(order.PaymentNotices, InboxConsumer{}),
		"unknown consumer":          consumer("payments of somebody", InboxConsumer{Secrets: good}),
		"tenant of a consumer":      consumer(order.PaymentNotices, InboxConsumer{Tenant: "\xff", Secrets: good}),
		"zero secret":               consumer(order.PaymentNotices, InboxConsumer{Secrets: []signature.Secret{{}}}),
		"certificate without a key": {Network: Network{CertFile: "c"}},
		"key without a certificate": {Network: Network{KeyFile: "k"}},
		"connections":               {Network: Network{Connections: -1}},
		"requests of a tenant":      {Network: Network{TenantRequests: -1}},
		"wait":                      {Network: Network{MaxWait: -1}},
		"origin":                    {Network: Network{Origins: []string{"*"}}},
		"public URL":                {Network: Network{PublicURL: "https://host/v1"}},
		"path of the console":       {Network: Network{PublicURL: "https://host/console"}},
		"tokens without audience": {Auth: Auth{JWT: &jwt.Config{Issuer: authtest.Issuer, Algorithms: []string{"RS256"},
			JWKS: "https://idp.example"}}},
		"login without public URL": {Address: "0.0.0.0:8080", Network: Network{PlainHTTP: true}, Auth: Auth{Keys: true, Login: &login.Config{}}},
	} {
		c.Workflows = theOrder()
		_, err := Start(t.Context(), c)
		assert.ErrorAs(t, err, new(*usage.Error), name)
	}
	for _, c := range []Config{
		{Address: "0.0.0.0:8080", Console: "/console", Network: Network{PublicURL: "https://pawl.example.com"}},
		{Address: "0.0.0.0:8080", Console: NoConsole},
		{Address: "127.0.0.1:8080", Console: "/console"},
	} {
		c.Auth.Login = &login.Config{}
		assert.NoError(t, c.checkConsole(), c.Address)
	}
}

func TestConnectionsIn(t *testing.T) {
	for limit, want := range map[int64]int{math.MaxInt64: 10_000, 460 << 20: 1472, 64 << 30: 10_000, 1 << 20: 100} {
		assert.Equal(t, want, connectionsIn(limit), limit)
	}
}

func TestPrivateDatabase_ErrorsNameFolder(t *testing.T) {
	t.Setenv("PAWL_HOME", "/srv/wrong")
	err := ofPrivate(schema.ErrBehind)
	assert.ErrorIs(t, err, schema.ErrBehind)
	assert.ErrorContains(t, err, "the private one in /srv/wrong/postgres: PAWL_HOME names another folder")
}
