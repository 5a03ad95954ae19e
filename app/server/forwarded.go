package server

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// hsts makes browsers use TLS for a year.
const hsts = "max-age=31536000"

// known sets the client and the scheme of a request from the headers of a trusted proxy. Such headers of other senders are ignored.
func (s *Server) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure := r.TLS != nil
		if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && within(s.config.Proxies, peer.Addr().Unmap()) {
			if o, ok := originOf(r.Header, s.config.Proxies); ok {
				r = r.WithContext(r.Context()) // a copy
				if o.client.IsValid() {
					r.RemoteAddr = netip.AddrPortFrom(o.client, 0).String()
				}
				if o.host != "" {
					r.Host = o.host
				}
				secure = o.proto == "https" || o.proto == "" && secure
			}
		}
		if secure && !ofThisMachine(r.Host) {
			w.Header().Set("Strict-Transport-Security", hsts)
		}
		next.ServeHTTP(w, r)
	})
}

// ofThisMachine reports whether a host is a loopback name. Strict transport security must not apply to it, because it would cover every
// other port of the machine.
func ofThisMachine(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	_, err := netip.ParseAddr(name)
	return err == nil || strings.EqualFold(name, "localhost")
}

// origin is the client side of a request before trusted proxies.
type origin struct {
	client      netip.Addr // zero if unknown
	proto, host string     // "" if unknown
}

// originOf reads Forwarded (RFC 7239), or X-Forwarded-For, -Proto and -Host. It reports false if both are set: a proxy sets one of them,
// and forwards the other one from the client.
func originOf(h http.Header, proxies []netip.Prefix) (o origin, ok bool) {
	forwarded := h.Values("Forwarded")
	old := len(h.Values("X-Forwarded-For"))+len(h.Values("X-Forwarded-Proto"))+len(h.Values("X-Forwarded-Host")) > 0
	switch {
	case len(forwarded) > 0 && old:
		return o, false
	case old:
		o.client, _ = firstForeign(items(h.Values("X-Forwarded-For"), ','), proxies)
		o.proto = strings.ToLower(last(h.Values("X-Forwarded-Proto")))
		o.host = hostOf(last(h.Values("X-Forwarded-Host")))
	case len(forwarded) > 0:
		o = rfc7239(forwarded, proxies)
	}
	return o, true
}

// firstForeign returns the last address that is not a trusted proxy, and its index. A client may forge the addresses before it. If all are
// proxies, it is the first; if one cannot be parsed, the one after it.
func firstForeign(addresses []string, proxies []netip.Prefix) (found netip.Addr, at int) {
	at = len(addresses)
	for i := len(addresses) - 1; i >= 0; i-- {
		address, ok := addressOf(addresses[i])
		if !ok {
			break
		}
		found, at = address, i
		if !within(proxies, address) {
			break
		}
	}
	return found, at
}

// rfc7239 reads the element of the proxy that the client connected to.
func rfc7239(values []string, proxies []netip.Prefix) (o origin) {
	var elements []map[string]string
	var addresses []string
	for _, text := range items(values, ',') {
		element := map[string]string{}
		for _, pair := range items([]string{text}, ';') {
			name, value, _ := strings.Cut(pair, "=")
			element[strings.ToLower(strings.TrimSpace(name))] = strings.Trim(strings.TrimSpace(value), `"`)
		}
		elements = append(elements, element)
		addresses = append(addresses, element["for"])
	}
	client, at := firstForeign(addresses, proxies)
	if at == len(elements) { // unknown, or an obfuscated name
		at = len(elements) - 1
	}
	if at >= 0 {
		o.proto, o.host = strings.ToLower(elements[at]["proto"]), hostOf(elements[at]["host"])
	}
	o.client = client
	return o
}

// items splits lists outside of quotes.
func items(values []string, separator byte) (all []string) {
	for _, text := range values {
		quoted, begin := false, 0
		for i := 0; i <= len(text); i++ {
			switch {
			case i == len(text) || text[i] == separator && !quoted:
				all = append(all, strings.TrimSpace(text[begin:i]))
				begin = i + 1
			case text[i] == '"':
				quoted = !quoted
			}
		}
	}
	return all
}

// last returns the value of the nearest proxy.
func last(values []string) string {
	all := items(values, ',')
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// addressOf parses an address with or without a port.
func addressOf(text string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap(), true
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return address.Unmap(), err == nil && address.Zone() == ""
}

// hostOf returns the host of a text with or without a port; "" if the text is invalid.
func hostOf(text string) string {
	if u, err := url.Parse("//" + text); err != nil || u.Host != text || u.User != nil {
		return ""
	}
	return text
}
