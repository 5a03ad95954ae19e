package server

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// told is what a handler is told.
type told struct{ Remote, Host, HSTS string }

// telling answers with what it is told.
var telling = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	_ = json.NewEncoder(w).Encode(told{remote.Addr().String(), r.Host, w.Header().Get("Strict-Transport-Security")})
})

func ask(t *testing.T, s *Server, headers ...string) (got told) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String(), nil)
	require.NoError(t, err)
	r.Host = "inside.example"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&got))
	return got
}

func TestOnlyOurProxiesAreBelieved(t *testing.T) {
	const xff, forwarded = "X-Forwarded-For", "Forwarded"
	ours := Config{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}}
	behind := serving(t, ours, telling)
	direct := serving(t, Config{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, telling)
	for name, tt := range map[string]struct {
		headers []string
		want    told
	}{
		"nothing is said": {nil, told{"127.0.0.1", "inside.example", ""}},
		"a client":        {[]string{xff, "192.0.2.7"}, told{"192.0.2.7", "inside.example", ""}},
		"with a port":     {[]string{xff, "192.0.2.7:99"}, told{"192.0.2.7", "inside.example", ""}},
		"IPv6":            {[]string{xff, "2001:db8::7"}, told{"2001:db8::7", "inside.example", ""}},
		"IPv4 in IPv6":    {[]string{xff, "::ffff:192.0.2.7"}, told{"192.0.2.7", "inside.example", ""}},
		"two proxies":     {[]string{xff, "192.0.2.7, 10.1.1.1"}, told{"192.0.2.7", "inside.example", ""}},
		"made up before":  {[]string{xff, "1.2.3.4, 192.0.2.7, 10.1.1.1"}, told{"192.0.2.7", "inside.example", ""}},
		"in two lines":    {[]string{xff, "1.2.3.4", xff, "192.0.2.7"}, told{"192.0.2.7", "inside.example", ""}},
		"nonsense before": {[]string{xff, "<script>, 10.1.1.1"}, told{"10.1.1.1", "inside.example", ""}},
		"nonsense":        {[]string{xff, "<script>"}, told{"127.0.0.1", "inside.example", ""}},
		"all are ours":    {[]string{xff, "10.2.2.2, 10.1.1.1"}, told{"10.2.2.2", "inside.example", ""}},
		"for a host over TLS": {[]string{xff, "192.0.2.7", "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "https"},
			told{"192.0.2.7", "a.example", hsts}},
		"over TLS, localhost": {[]string{"X-Forwarded-Host", "localhost:8080", "X-Forwarded-Proto", "https"},
			told{"127.0.0.1", "localhost:8080", ""}},
		"without TLS": {[]string{"X-Forwarded-Proto", "http"}, told{"127.0.0.1", "inside.example", ""}},
		"no host":     {[]string{"X-Forwarded-Host", "a.example/path"}, told{"127.0.0.1", "inside.example", ""}},
		"RFC 7239": {[]string{forwarded, `for=1.2.3.4;host=no.example, For="[2001:db8::7]:99"; Proto=https;host="a.example", ` +
			`for=10.1.1.1;proto=http;host=b.example`},
			told{"2001:db8::7", "a.example", hsts}},
		"RFC 7239, unknown": {[]string{forwarded, `for=unknown;proto=https;host=a.example`}, told{"127.0.0.1", "a.example", hsts}},
		"RFC 7239, quotes":  {[]string{forwarded, `for="_a,for=1.2.3.4", for=192.0.2.7`}, told{"192.0.2.7", "inside.example", ""}},
		"both":              {[]string{forwarded, "for=1.2.3.4", xff, "192.0.2.7"}, told{"127.0.0.1", "inside.example", ""}},
	} {
		assert.Equal(t, tt.want, ask(t, behind, tt.headers...), name)
		assert.Equalf(t, (told{"127.0.0.1", "inside.example", ""}), ask(t, direct, tt.headers...), "%s, by nobody's proxy", name)
	}
}

// A proxy's connections are many callers'.
func TestOurProxiesHaveAnyShareOfTheConnections(t *testing.T) {
	s := serving(t, Config{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Limits: Limits{PerAddress: 1}}, answering)
	for range 3 {
		answered(t, dial(t, s, whole))
	}
}

func FuzzForwarded(f *testing.F) {
	for _, text := range []string{"", ",", ";", "for=1.2.3.4", `for="[::1]:9";host="`, "a,b;c=d", "for=%zz;host=a b",
		strings.Repeat(",", 99)} {
		f.Add(text, text)
	}
	ours := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, forwarded, old string) {
		for _, h := range []http.Header{{"Forwarded": {forwarded}}, {"X-Forwarded-For": {old}, "X-Forwarded-Host": {old}}} {
			o, ok := originOf(h, ours)
			assert.Truef(t, ok && !strings.ContainsAny(o.host, "/ @?#\r\n"), "%q: %+v, %v", h, o, ok)
		}
	})
}
