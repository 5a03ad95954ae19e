package service

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
)

const proxyFiles = "../../deploy/proxy/"

// proxied is a service behind a proxy, and a client that connects to the proxy from another address of this machine.
type proxied struct {
	address string // of the proxy
	host    string // that clients name
	prefix  string // of the paths that clients name
	key     string
	tls     *tls.Config
	client  *http.Client
	log     *testlog.Log // of the service
}

// startProxy starts a service, and a proxy in front of it that start runs on the listener with the certificate in dir.
func startProxy(t *testing.T, start func(dir, node string, front net.Listener) *exec.Cmd, change ...func(*Config)) *proxied {
	t.Helper()
	p := &proxied{host: "example.com", log: &testlog.Log{}}
	s := service(t, append([]func(*Config){func(c *Config) {
		c.Auth.Keys, c.AccessLog, c.Log = true, true, slog.New(p.log)
		c.Network.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	}}, change...)...)
	_, p.key = makeKey(t, s, "shop", "read submit stream operate")
	dir := t.TempDir()
	p.tls = certificateIn(t, dir)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.address = front.Addr().String()
	c := start(dir, s.server.Addr().String(), front)
	file, err := front.(*net.TCPListener).File()
	require.NoError(t, err)
	c.ExtraFiles = []*os.File{file} // the descriptor 3, which listens already
	printed := &bytes.Buffer{}
	c.Stdout, c.Stderr = printed, printed
	require.NoError(t, c.Start())
	_, _ = front.Close(), file.Close()
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		_ = c.Process.Signal(syscall.SIGTERM)
		await.Receive(t, "the end of the proxy", ended)
		if t.Failed() {
			t.Log(printed.String())
		}
	})
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: p.tls.Clone(), ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, p.address)
		}}}
	return p
}

// certificateIn writes a certificate and its key as the files that the configurations name, and returns what trusts it.
func certificateIn(t *testing.T, dir string) *tls.Config {
	t.Helper()
	certFile, keyFile, trust := certified(t)
	for name, from := range map[string][]string{"pawl.crt": {certFile}, "pawl.key": {keyFile}, "pawl.pem": {certFile, keyFile}} {
		var text []byte
		for _, path := range from {
			part, err := os.ReadFile(path)
			require.NoError(t, err)
			text = append(text, part...)
		}
		writeFile(t, filepath.Join(dir, name), string(text))
	}
	return trust
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// shipped returns a configuration from deploy/proxy with replacements, each of which has to be there.
func shipped(t *testing.T, name string, replace ...string) string {
	t.Helper()
	raw, err := os.ReadFile(proxyFiles + name)
	require.NoError(t, err)
	text := string(raw)
	for i := 0; i < len(replace); i += 2 {
		require.Containsf(t, text, replace[i], "%s does not contain", name)
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	return text
}

// program returns the path of a program, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian package %s)", name, name)
	}
	return path
}

func startNginx(t *testing.T, limit string, change ...func(*Config)) *proxied {
	t.Helper()
	path := program(t, "nginx")
	return startProxy(t, func(dir, node string, front net.Listener) *exec.Cmd {
		writeFile(t, filepath.Join(dir, "pawl.conf"), shipped(t, "nginx.conf", "443", front.Addr().String(), "10.1.2.11:8080", node,
			"10.1.2.12:8080", node, "pawl.example.com", "example.com", "/etc/nginx/tls", dir, "75s", limit))
		writeFile(t, filepath.Join(dir, "nginx.conf"), `daemon off; user root; worker_processes 1; pid nginx.pid; error_log stderr;
events {}
http {
    access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi; include pawl.conf;
}
`)
		c := exec.Command(path, "-p", dir, "-c", "nginx.conf", "-e", "stderr")
		c.Env = append(os.Environ(), "NGINX=3;") // it listens on the descriptor 3
		return c
	}, change...)
}

func startHAProxy(t *testing.T, limit string, change ...func(*Config)) *proxied {
	t.Helper()
	path := program(t, "haproxy")
	return startProxy(t, func(dir, node string, _ net.Listener) *exec.Cmd {
		name := filepath.Join(dir, "haproxy.cfg")
		writeFile(t, name, shipped(t, "haproxy.cfg", ":443", "fd@3", "10.1.2.11:8080", node, "10.1.2.12:8080", node,
			"/etc/haproxy/tls", dir, "75s", limit))
		return exec.Command(path, "-db", "-f", name)
	}, change...)
}

// startProxies starts those that can be run, with another time limit instead of each of 75 seconds.
var startProxies = map[string]func(t *testing.T, limit string, change ...func(*Config)) *proxied{"nginx": startNginx, "haproxy": startHAProxy}

// The shipped configurations forward all that Pawl's clients use.
func TestProxiesServeClients(t *testing.T) {
	for name, start := range startProxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, "75s")
			t.Run("REST", p.rest)
			t.Run("wait", p.waits)
			t.Run("event stream", p.eventStream)
			t.Run("WebSocket", p.webSocket)
			t.Run("bulk", p.bulk)
			t.Run("refusals", p.refusals)
		})
	}
}

func (p *proxied) request(t *testing.T, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+p.host+p.prefix+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+p.key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := p.client.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// rest also shows that Pawl learns the caller, the host and TLS from the proxy, and nothing that the client has made up.
func (p *proxied) rest(t *testing.T) {
	path := "/v1/workflows/order/place"
	resp := p.request(t, "POST", path, `{"customer":"r","cart":"1","total":1,"currency":"EUR"}`, "Idempotency-Key", "rest",
		"X-Forwarded-For", "203.0.113.9", "Forwarded", "for=203.0.113.9;host=evil.example", "X-Forwarded-Host", "localhost",
		"X-Forwarded-Proto", "http")
	text := textOf(t, resp)
	require.Truef(t, resp.StatusCode == 201 && resp.ProtoMajor == 2, "%v %v %v", resp.Proto, resp.StatusCode, text)
	assert.NotEqual(t, "", resp.Header.Get("Strict-Transport-Security"),
		"Pawl does not know that the client uses TLS, or for which host")
	location, ok := strings.CutPrefix(resp.Header.Get("Location"), p.prefix)
	assert.True(t, ok && p.request(t, "GET", location, "").StatusCode == 200, location)
	await.Eventually(t, "the access log names the caller", func() bool { return p.log.Count("remote=127.0.0.2") > 0 })
	assert.Truef(t, p.log.Count("203.0.113.9") <= 0, "a client's header counts %v", p.log.List())
}

func (p *proxied) waits(t *testing.T) {
	p.place(t, "w")
	resp := p.request(t, "POST", "/v1/workflows/order/keys/w:1/pay", `{"method":"card"}`, "Idempotency-Key", "w-2", "Prefer", "wait=60")
	text := textOf(t, resp)
	assert.Truef(t, resp.StatusCode == 200 && strings.Contains(text, `"state":"paid"`), "%v %v", resp.StatusCode, text)
}

func (p *proxied) place(t *testing.T, customer string) {
	t.Helper()
	resp := p.request(t, "POST", "/v1/workflows/order/place", `{"customer":"`+customer+`","cart":"1","total":1,"currency":"EUR"}`,
		"Idempotency-Key", customer)
	text := textOf(t, resp)
	require.Equal(t, 201, resp.StatusCode, text)
}

// eventStream reads each event before the next one exists.
func (p *proxied) eventStream(t *testing.T) {
	resp := p.request(t, "GET", "/v1/events?after=now&workflow=order", "", "Accept", "text/event-stream")
	require.Equal(t, 200, resp.StatusCode)
	lines := make(chan string)
	go func() {
		for scan := bufio.NewScanner(resp.Body); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	line := func() string { return await.Receive(t, "a line of the stream", lines) }
	for line() != "retry: 1000" {
	}
	for i := range 3 {
		customer := "s" + strconv.Itoa(i)
		p.place(t, customer)
		for !strings.Contains(line(), customer+":1") {
		}
	}
}

func (p *proxied) webSocket(t *testing.T) {
	ws := p.dial(t)
	_ = ws.SetReadDeadline(time.Now().Add(await.Patience))
	require.NoError(t, ws.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","id":"a","after":"now"}`)))
	read := func(fragment string) {
		t.Helper()
		for {
			_, text, err := ws.ReadMessage()
			require.NoError(t, err)
			if strings.Contains(string(text), fragment) {
				return
			}
		}
	}
	read("subscribed")
	p.place(t, "ws")
	read("ws:1")
}

func (p *proxied) dial(t *testing.T) *websocket.Conn {
	t.Helper()
	dialer := websocket.Dialer{TLSClientConfig: p.tls.Clone(), Subprotocols: []string{"pawl.v1"},
		NetDialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, p.address)
		}}
	header := http.Header{"Authorization": {"Bearer " + p.key}, "Origin": {"https://" + p.host}} // a page of this host
	ws, _, err := dialer.DialContext(t.Context(), "wss://"+p.host+p.prefix+"/v1/stream", header)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ws.Close() })
	return ws
}

// bulk sends a body that is larger than the default limits of proxies.
func (p *proxied) bulk(t *testing.T) {
	item := `{"workflow":"order","transition":"place","idempotency_key":"bulk",` +
		`"payload":{"customer":"b","cart":"1","total":1,"currency":"EUR"}}`
	resp := p.request(t, "POST", "/v1/commands", "["+item+strings.Repeat(" ", 15<<20)+"]")
	text := textOf(t, resp)
	assert.Equal(t, 200, resp.StatusCode, text)
}

// With --public-url the proxy may forward the prefix, or remove it.
func TestProxiesServeUnderPrefix(t *testing.T) {
	published := func(c *Config) { c.Network.PublicURL = "https://example.com/pawl" }
	for name, start := range startProxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, "75s", published)
			p.prefix = "/pawl"
			t.Run("REST", p.rest)
			t.Run("WebSocket", p.webSocket)
			t.Run("console", p.console)
		})
	}
}

// console signs in, and follows all links of the first page.
func (p *proxied) console(t *testing.T) {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	p.client.Jar = jar
	defer func() { p.client.Jar = nil }()
	at := "https://" + p.host + "/pawl/console/"
	resp := p.page(t, "POST", at+"sign-in", url.Values{"credential": {p.key}}.Encode())
	text := textOf(t, resp)
	require.Truef(t, resp.StatusCode == 200 && resp.Request.URL.String() == at, "%v %v %v", resp.StatusCode, resp.Request.URL, text)
	links := regexp.MustCompile(`="(/[^"]*)"`).FindAllStringSubmatch(text, -1)
	assert.True(t, len(links) >= 5, text)
	for _, link := range links {
		resp := p.page(t, "GET", "https://"+p.host+html.UnescapeString(link[1]), "")
		if !strings.HasPrefix(link[1], "/pawl/") || resp.StatusCode >= 400 && resp.StatusCode != 403 && !strings.Contains(link[1], "sign-out") {
			t.Error(link[1], resp.StatusCode)
		}
	}
	cookies := jar.Cookies(&url.URL{Scheme: "https", Host: p.host, Path: "/"})
	assert.Empty(t, cookies, "cookies for the whole host")
}

// page sends a request as a browser sends it for a page of the console.
func (p *proxied) page(t *testing.T, method, address, form string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
	require.NoError(t, err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := p.client.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// Waits and quiet streams survive a time limit that is a little longer than the pauses in which nothing is sent.
func TestProxiesKeepQuietStreams(t *testing.T) {
	pgtest.Long(t)
	for name, start := range startProxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, "28s")
			waited := make(chan error, 1)
			go func() { waited <- p.waitForEvents(t.Context()) }()
			events := p.request(t, "GET", "/v1/events?after=now", "", "Accept", "text/event-stream")
			ws, pings := p.dial(t), 0
			answer := ws.PingHandler()
			ws.SetPingHandler(func(data string) error {
				if pings++; pings == 2 {
					_ = ws.SetReadDeadline(time.Now())
				}
				return answer(data)
			})
			_, _, err := ws.ReadMessage()
			assert.Truef(t, pings >= 2, "the WebSocket ended after %d pings: %v", pings, err)
			comments := 0
			for scan := bufio.NewScanner(events.Body); comments < 2 && scan.Scan(); {
				if strings.HasPrefix(scan.Text(), ":") {
					comments++
				}
			}
			assert.Truef(t, comments >= 2, "the event stream ended after %d comments", comments)
			assert.NoError(t, await.Receive(t, "the end of the wait", waited))
		})
	}
}

// waitForEvents asks for events that do not come, for the longest time.
func (p *proxied) waitForEvents(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.host+"/v1/events?after=now", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+p.key)
	r.Header.Set("Prefer", "wait=60")
	resp, err := p.client.Do(r)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != 200 || resp.Header.Get("Preference-Applied") != "wait" {
		return fmt.Errorf("%d %v, %w", resp.StatusCode, resp.Header, err)
	}
	return nil
}

// The shipped time limits allow the longest wait, and the pauses of quiet streams.
func TestProxiesWaitLongEnough(t *testing.T) {
	for name, settings := range map[string][]string{
		"nginx.conf":  {"proxy_read_timeout ", "proxy_send_timeout "},
		"haproxy.cfg": {"timeout client ", "timeout server ", "timeout tunnel "},
		"envoy.yaml":  {"stream_idle_timeout: "},
	} {
		text := shipped(t, name)
		for _, setting := range settings {
			found := regexp.MustCompile("(?m)^ *" + setting + `(\d+s);?$`).FindStringSubmatch(text)
			if found == nil {
				t.Errorf("%s has no %s", name, setting)
				continue
			}
			limit, err := time.ParseDuration(found[1])
			assert.Truef(t, err == nil && limit >= 2*api.DefaultWait && limit >= time.Minute, "%s: %s%v, %v", name, setting, limit, err)
		}
	}
	for _, wanted := range []string{"\n                            timeout: 0s\n", "upgrade_type: websocket", "idle_timeout: 60s"} {
		assert.Contains(t, shipped(t, "envoy.yaml"), wanted, "envoy.yaml has no")
	}
}

// refusals shows that answers with 503 take no node out, and are those of Pawl.
func (p *proxied) refusals(t *testing.T) {
	resp := p.request(t, "PUT", "/v1/ops/paused/order", `{"reason":"test"}`)
	require.Equal(t, 204, resp.StatusCode)
	place := func() string {
		resp := p.request(t, "POST", "/v1/workflows/order/place", `{"customer":"p","cart":"1","total":1,"currency":"EUR"}`,
			"Idempotency-Key", "paused")
		if text := textOf(t, resp); resp.StatusCode != 503 || !strings.Contains(text, `"code":"paused"`) {
			return fmt.Sprint(resp.StatusCode, " ", text)
		}
		return ""
	}
	await.Eventually(t, "the workflow is paused", func() bool { return place() == "" })
	for range 20 {
		require.Equal(t, "", place())
	}
	resp = p.request(t, "GET", "/v1/workflows", "")
	assert.Equal(t, 200, resp.StatusCode)
}
