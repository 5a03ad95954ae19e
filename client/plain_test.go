package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/client"
)

func TestCredentialNeedsTLS(t *testing.T) {
	source := func(context.Context) (string, error) { return "secret", nil }
	for url, open := range map[string]bool{
		"https://pawl.example": false, "http://localhost:8080": false, "http://LOCALHOST": false, "http://127.0.0.1:8080": false,
		"http://127.9.9.9": false, "http://[::1]:8080": false, "http://[::ffff:127.0.0.1]": false,
		"http://pawl.example": true, "http://10.0.0.1:8080": true, "http://localhost.pawl.example": true, "http://127.0.0.1.pawl.example": true,
		"http://[::2]": true, "http://2130706433": true,
	} {
		for _, tt := range []struct {
			config  client.Config
			refused bool
		}{
			{client.Config{Token: "secret"}, open},
			{client.Config{TokenSource: source}, open},
			{client.Config{Token: "secret", PlainHTTP: true}, false},
			{client.Config{}, false},
		} {
			tt.config.URLs = []string{"https://first.example", url}
			_, err := client.New(tt.config)
			if errors.Is(err, client.ErrPlainHTTP) != tt.refused || err != nil && (!tt.refused || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%s with %+v: %v", url, tt.config, err)
			}
		}
	}
}
