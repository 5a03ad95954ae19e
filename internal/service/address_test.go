package service

import (
	"errors"
	"testing"

	"github.com/pawlhq/pawl/internal/usage"
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
		err := checkAddress(address)
		if (err == nil) != allowed {
			t.Errorf("%q: %v, want allowed %v", address, err, allowed)
		}
		if _, ok := errors.AsType[*usage.Error](err); err != nil && !ok {
			t.Errorf("%q: %v is no usage error", address, err)
		}
	}
}
