package bench

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/transitions"
)

// knownBy returns the authentication of a server, and a header for each of its clients. All of them are one actor of the orders' tenant.
type knownBy func(ctx context.Context, e *env, clients int) (api.Identify, []string, error)

// byName believes them.
func byName(_ context.Context, _ *env, clients int) (api.Identify, []string, error) {
	headers, err := headersOf("Pawl-Actor: ", clients, func(int) (string, error) { return actor, nil })
	return api.Loopback, headers, err
}

func headersOf(begin string, clients int, of func(i int) (string, error)) ([]string, error) {
	list := make([]string, clients)
	for i := range list {
		rest, err := of(i)
		if err != nil {
			return nil, err
		}
		list[i] = begin + rest
	}
	return list, nil
}

// byToken asks each for a token of its own, as an identity provider would make it.
func byToken(_ context.Context, _ *env, clients int) (api.Identify, []string, error) {
	secret := []byte(strings.Repeat("s", 32))
	v, err := jwt.New(jwt.Config{Issuer: "https://idp.example", Audience: []string{"pawl"}, Algorithms: []string{"HS256"}, Secret: secret,
		Tenant: transitions.DefaultTenant, Grants: auth.Grants{{Right: auth.Submit}}})
	if err != nil {
		return nil, nil, err
	}
	headers, err := headersOf("Authorization: Bearer ", clients, func(i int) (string, error) { return signed(secret, i), nil })
	return api.Bearer(v.Verify), headers, err
}

// signed is a token of an hour.
func signed(secret []byte, i int) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(fmt.Appendf(nil,
		`{"iss":"https://idp.example","aud":"pawl","sub":%q,"exp":%d,"jti":"%d"}`, actor, time.Now().Add(time.Hour).Unix(), i))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text)) // it never fails
	return text + "." + encode(mac.Sum(nil))
}

// byKey asks each for an API key of its own.
func byKey(ctx context.Context, e *env, clients int) (api.Identify, []string, error) {
	pool, err := e.db.pool(ctx)
	if err != nil {
		return nil, nil, err
	}
	e.later(func() error { pool.Close(); return nil })
	v := apikey.NewVerifier(apikey.NewTable(pool, e.db.in), apikey.Config{Log: slog.New(slog.DiscardHandler)})
	v.Start()
	e.later(func() error { v.Stop(); return nil })
	made := time.Now().UnixNano()
	headers, err := headersOf("Authorization: Bearer ", clients, func(i int) (string, error) {
		_, text, err := v.Create(ctx, apikey.Key{Tenant: transitions.DefaultTenant, Name: fmt.Sprintf("client %d of %d", i, made), Actor: actor,
			Grants: auth.Grants{{Right: auth.Submit}}, CreatedBy: "bench"})
		return text, err
	})
	return api.Bearer(v.Verify), headers, err
}
