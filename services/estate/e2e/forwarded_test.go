package e2e_test

import (
	"io"
	"net"
	"strings"
	"testing"
)

// spoof is a value that only the gateway may set; nothing of it may arrive.
const spoof = "6.6.6.6"

func TestTheForwardedHeadersAreMadeAnew(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	_, port, err := net.SplitHostPort(l.data)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"X-Forwarded-For":    "127.0.0.1",
		"X-Forwarded-Host":   l.data,
		"X-Forwarded-Port":   port,
		"X-Forwarded-Proto":  "http",
		"X-Forwarded-Prefix": labPrefix,
		"X-Real-Ip":          "127.0.0.1",
	}
	for _, test := range []struct {
		name  string
		lines []string
	}{
		{"nothing spoofed", nil},
		{"each spoofed", []string{
			"X-Forwarded-For: " + spoof, "X-Forwarded-Host: " + spoof, "X-Forwarded-Port: 6666",
			"X-Forwarded-Proto: https", "X-Forwarded-Prefix: //" + spoof, "X-Real-IP: " + spoof, "Forwarded: for=" + spoof,
		}},
		{"on two lines", []string{"X-Forwarded-For: " + spoof, "X-Forwarded-For: 10.0.0.1", "X-Real-IP: " + spoof, "X-Real-IP: " + spoof}},
		{"as a list", []string{"X-Forwarded-For: 10.0.0.1, " + spoof, "Forwarded: for=10.0.0.1, for=" + spoof}},
		{"named in Connection", []string{
			"Connection: X-Forwarded-For, X-Forwarded-Host, x-forwarded-port, X-Forwarded-Proto, X-Forwarded-Prefix, x-real-ip",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l.old.reset()
			if got := rawGet(t, l.data, labPrefix+"/x", test.lines...); got.status != 200 {
				t.Fatalf("status = %d: %s", got.status, got.body)
			}
			saw := l.old.only(t)
			for name, value := range want {
				if values := saw.header.Values(name); !equal(values, []string{value}) {
					t.Errorf("%s = %q, want %q", name, values, value)
				}
			}
			forwarded := strings.Join(saw.header.Values("Forwarded"), ",")
			if !strings.Contains(forwarded, "for=") || !strings.Contains(forwarded, "127.0.0.1") {
				t.Errorf("Forwarded = %q, want it made anew for 127.0.0.1", forwarded)
			}
			wantNoSpoof(t, saw)
		})
	}
}

// wantNoSpoof checks that the spoofed value arrived under no name at all.
func wantNoSpoof(t *testing.T, saw seen) {
	t.Helper()
	for name, values := range saw.header {
		if strings.Contains(strings.Join(values, "\n"), spoof) {
			t.Errorf("%s = %q at the upstream", name, values)
		}
	}
	for name, values := range saw.trailer {
		if strings.Contains(strings.Join(values, "\n"), spoof) {
			t.Errorf("trailer %s = %q at the upstream", name, values)
		}
	}
}

func TestWhatOnlyTheGatewayMaySetIsRemovedInEverySpelling(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.toNew(t)
	for _, name := range []string{
		"X-Forwarded-For", "X_Forwarded_For", "X-Forwarded_For", "x_forwarded-for", "X_FORWARDED_HOST", "X_Forwarded_Port",
		"X_Forwarded_Proto", "X_Forwarded_Prefix", "X_Real_IP", "X-Real_IP", "Forwarded", "X-Route-Variant", "X_Route_Variant",
		"X-Route-Reason", "X_Route_Reason", "X-Route-Fallback", "X_Route_Fallback", "tmx_correlation_id", "tmx-correlation_id",
	} {
		t.Run(name, func(t *testing.T) {
			l.new.reset()
			got := rawGet(t, l.data, labPrefix+"/x", name+": "+spoof)
			if got.status != 200 {
				t.Fatalf("status = %d: %s", got.status, got.body)
			}
			saw := l.new.only(t)
			wantNoSpoof(t, saw)
			if strings.Contains(name, "_") && saw.header[name] != nil {
				t.Errorf("%s arrived", name)
			}
			for upstream, value := range map[string]string{"X-Route-Variant": "alternate", "X-Route-Reason": "draw"} {
				if values := saw.header.Values(upstream); !equal(values, []string{value}) {
					t.Errorf("%s = %q at the upstream, want %q", upstream, values, value)
				}
			}
			if strings.Contains(got.header.Get("X-Route-Fallback"), spoof) {
				t.Error("the client's own X-Route-Fallback came back")
			}
		})
	}
}

func TestASpoofedTrailerDoesNotArrive(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for _, name := range []string{"X-Forwarded-For", "X_Forwarded_For", "X-Real-IP", "X-Route-Variant", "tmx-correlation-id"} {
		for _, declared := range []string{"", "Trailer: " + name + "\r\n"} {
			l.old.reset()
			got := raw(t, l.data, "POST "+labPrefix+"/x HTTP/1.1\r\nHost: "+l.data+"\r\nConnection: close\r\n"+declared+
				"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"+name+": "+spoof+"\r\n\r\n")
			switch {
			case got.status == 200:
				wantNoSpoof(t, l.old.only(t))
			case got.status != 400:
				t.Errorf("%s, %q: status = %d, want 200 without it or 400", name, declared, got.status)
			}
		}
	}
}

func TestHopByHopFieldsAreRemovedBeforeOursAreAdded(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.toNew(t)
	got := rawGet(t, l.data, labPrefix+"/x",
		"Connection: X-Mine, X-Route-Variant, x-route-reason, tmx-correlation-id, X-Forwarded-For, Host, Authorization",
		"X-Mine: for this hop", "Authorization: Bearer b", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive",
		"Proxy-Authorization: Basic x", "TE: trailers, deflate", "Upgrade: foo", "Proxy: http://"+spoof, "X-Other: stays")
	if got.status != 200 {
		t.Fatalf("status = %d: %s", got.status, got.body)
	}
	saw := l.new.only(t)
	for _, name := range []string{"X-Mine", "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Upgrade", "Proxy"} {
		if values := saw.header.Values(name); len(values) != 0 {
			t.Errorf("%s = %q at the upstream", name, values)
		}
	}
	if te := saw.header.Values("Te"); len(te) != 0 && !equal(te, []string{"trailers"}) {
		t.Errorf("TE = %q at the upstream, want at most trailers", te)
	}
	for name, value := range map[string]string{
		"X-Route-Variant": "alternate", "X-Route-Reason": "draw", "X-Forwarded-For": "127.0.0.1", "X-Other": "stays",
	} {
		if values := saw.header.Values(name); !equal(values, []string{value}) {
			t.Errorf("%s = %q at the upstream, want %q", name, values, value)
		}
	}
	if saw.header.Get(correlationHeader) == "" {
		t.Errorf("no %s at the upstream", correlationHeader)
	}
	if saw.host != l.new.addr() {
		t.Errorf("Host = %q at the upstream", saw.host)
	}
}

func TestATrustedPeersForwardedHeadersAreAppendedTo(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{config: map[string]string{"trustedProxies": "[127.0.0.0/8, 10.0.0.0/8]"}})
	got := rawGet(t, l.data, labPrefix+"/x", "X-Forwarded-For: 9.9.9.9, 1.2.3.4, 10.0.0.7", correlationHeader+": trusted-1")
	if got.status != 200 {
		t.Fatalf("status = %d: %s", got.status, got.body)
	}
	if values := l.old.only(t).header.Values("X-Forwarded-For"); !equal(values, []string{"9.9.9.9, 1.2.3.4, 10.0.0.7, 127.0.0.1"}) {
		t.Errorf("X-Forwarded-For = %q, want the peer appended", values)
	}
	line := l.accessLine(t, "trusted-1")
	if line["client"] != "1.2.3.4" {
		t.Errorf("client in the log = %v, want the right-most untrusted address 1.2.3.4", line["client"])
	}
}

func TestTheHostIsKeptWhereTheRouteSaysSo(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{config: map[string]string{
		"routes": "[{prefix: " + labPrefix + ", service: " + labService + ", preserveHost: true}]",
	}})
	got := raw(t, l.data, "GET "+labPrefix+"/x HTTP/1.1\r\nHost: shop.example:81\r\nConnection: close\r\n\r\n")
	if got.status != 200 {
		t.Fatalf("status = %d: %s", got.status, got.body)
	}
	saw := l.old.only(t)
	if saw.host != "shop.example:81" {
		t.Errorf("Host = %q, want shop.example:81", saw.host)
	}
	if values := saw.header.Values("X-Forwarded-Host"); !equal(values, []string{"shop.example:81"}) {
		t.Errorf("X-Forwarded-Host = %q", values)
	}
}

func TestARouteMayKeepItsPrefixAndNameAHost(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{config: map[string]string{
		"routes": "[{host: shop.example, prefix: " + labPrefix + ", service: " + labService + ", stripPrefix: false}]",
	}})
	ask := func(host string) answer {
		return raw(t, l.data, "GET "+labPrefix+"/a%2Fb?x HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
	}
	for _, host := range []string{"shop.example", "SHOP.example", "shop.example:8080"} {
		l.old.reset()
		if got := ask(host); got.status != 200 {
			t.Errorf("Host %s: status = %d: %s", host, got.status, got.body)
			continue
		}
		saw := l.old.only(t)
		if saw.target != labPrefix+"/a%2Fb?x" {
			t.Errorf("target = %q, want the prefix kept", saw.target)
		}
		if values := saw.header.Values("X-Forwarded-Prefix"); len(values) != 0 {
			t.Errorf("X-Forwarded-Prefix = %q, but nothing was stripped", values)
		}
	}
	wantProblem(t, ask("other.example"), 404)
}

func TestTheVariantIsHiddenWhereTheConfigurationSaysSo(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{config: map[string]string{"exposeRoute": "false"}})
	l.toNew(t)
	got := call(t, "GET", l.base+"/x", nil, nil)
	if body := string(got.body); body != "new" {
		t.Fatalf("body = %q", body)
	}
	for _, name := range []string{"X-Route-Variant", "X-Route-Reason"} {
		if values := got.header.Values(name); len(values) != 0 {
			t.Errorf("%s = %q on the answer", name, values)
		}
	}
	if v := l.new.only(t).header.Get("X-Route-Variant"); v != "alternate" {
		t.Errorf("X-Route-Variant = %q at the upstream", v)
	}
}

func TestAnExpectedContinueReachesTheClientAndTheBodyTheUpstream(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	conn, err := net.Dial("tcp", l.data)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST "+labPrefix+"/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len("HTTP/1.1 100"))
	if _, err := io.ReadFull(conn, first); err != nil || string(first) != "HTTP/1.1 100" {
		t.Fatalf("the first answer begins %q, %v; want a 100", first, err)
	}
	if _, err := io.WriteString(conn, "hi"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(rest), "HTTP/1.1 200") {
		t.Fatalf("the answer = %q, %v", rest, err)
	}
	if saw := l.old.only(t); saw.size != 2 {
		t.Errorf("the upstream saw %d bytes, want 2", saw.size)
	}
}
