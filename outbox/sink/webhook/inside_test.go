package webhook

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/outbox/sink"
)

func TestGuardAllowsPublicAndListed(t *testing.T) {
	g := guard{[]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}}
	for address, allowed := range map[string]bool{
		"93.184.215.14:443": true, "8.8.8.8:80": true, "1.1.1.1:443": true, "223.255.255.254:1": true,
		"[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443": true, "[2a00:1450:4001:80e::200e]:443": true,
		"10.1.2.3:443": true, "[::ffff:10.1.2.3]:443": true, "[fd00:1::1]:443": true,
		"[64:ff9b::8.8.8.8]:443": true,

		"127.0.0.1:443": false, "127.255.0.1:443": false, "0.0.0.0:443": false, "[::]:443": false, "[::1]:443": false,
		"10.0.0.1:443": false, "172.16.0.1:443": false, "172.31.255.255:443": false, "192.168.1.1:443": false,
		"100.64.0.1:443": false, "169.254.169.254:80": false, "192.0.0.8:443": false, "198.18.0.1:443": false,
		"224.0.0.1:443": false, "240.0.0.1:443": false, "255.255.255.255:443": false, "203.0.113.5:443": false,
		"[fe80::1]:443": false, "[fe80::1%eth0]:443": false, "[fec0::1]:443": false, "[fd00:2::1]:443": false, "[fc00::1]:443": false,
		"[ff02::1]:443": false, "[2001:db8::1]:443": false, "[2001::1]:443": false, "[2002:7f00:1::]:443": false,
		"[::ffff:127.0.0.1]:443": false, "[::ffff:169.254.169.254]:80": false, "[::127.0.0.1]:443": false,
		"[64:ff9b::127.0.0.1]:443": false, "[64:ff9b::10.0.0.1]:443": false, "[64:ff9b:1::1]:443": false, "[100::1]:443": false,
		"[2606:4700::1111%eth0]:443": false, "localhost:443": false, "": false,
	} {
		err := g.control(t.Context(), "tcp", address, nil)
		assert.Equalf(t, allowed, (err == nil), "%s: %v, allowed", address, err)
	}
}

func TestStatusKinds(t *testing.T) {
	for kind, statuses := range map[sink.Kind][]int{
		"":               {200, 201, 202, 204, 299},
		sink.Permanent:   {400, 411, 413, 418, 422, 431, 451, 499},
		sink.Temporary:   {408, 409, 423, 425, 500, 501, 507, 599, 199, 999},
		sink.Unavailable: {300, 301, 302, 303, 304, 307, 308, 401, 402, 403, 404, 405, 406, 407, 415, 421, 429, 502, 503, 504},
		sink.Gone:        {410},
	} {
		for _, status := range statuses {
			assert.Equalf(t, kind, meaning(status), "%d means", status)
		}
	}
}

func TestRetryAfterFormats(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, "-1": 0, "1.5": 0, "soon": 0,
		"86400": 24 * time.Hour, "86401": 24 * time.Hour, "18446744073709551615": 24 * time.Hour, "18446744073709551616": 0,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		now.AddDate(100, 0, 0).Format(http.TimeFormat):    24 * time.Hour,
		"Friday, 01-May-26 12:00:10 GMT":                  10 * time.Second,
	} {
		assert.Equalf(t, want, retryAfter(header, now), "%q", header)
	}
}
