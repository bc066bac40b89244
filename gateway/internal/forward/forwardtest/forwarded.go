package forwardtest

import (
	"net/netip"
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
)

// testForwarded shows rows 44, 45 and 49. The peer of every request is 127.0.0.1.
func (s *suite) testForwarded(t *testing.T) {
	tests := []struct {
		name    string
		trusted string
		lines   []string
		want    map[string]string
		client  string
	}{
		{"made anew for anybody", "", []string{
			"X-Forwarded-For: 10.0.0.1", "X-Forwarded-For: 10.0.0.2", "X-Forwarded-Host: evil", "X-Forwarded-Port: 443",
			"X-Forwarded-Proto: https", "X-Forwarded-Prefix: //evil", "Forwarded: for=10.0.0.1", "X-Real-IP: 10.0.0.1",
		}, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "shop.example:81", "X-Forwarded-Port": "81",
			"X-Forwarded-Proto": "http", "X-Forwarded-Prefix": prefix, "X-Real-IP": "127.0.0.1",
			"Forwarded": `for=127.0.0.1;host="shop.example:81";proto=http`,
		}, "127.0.0.1"},
		{"appended for a trusted proxy", "127.0.0.0/8", []string{
			"X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 1.1.1.1", "X-Forwarded-Host: outer.example", "X-Forwarded-Port: 443",
			"X-Forwarded-Proto: https", "X-Forwarded-Prefix: /outer/", "Forwarded: for=1.1.1.1;proto=https", "X-Real-IP: 9.9.9.9",
		}, map[string]string{
			"X-Forwarded-For": "6.6.6.6, 1.1.1.1, 127.0.0.1", "X-Forwarded-Host": "outer.example", "X-Forwarded-Port": "443",
			"X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/outer" + prefix, "X-Real-IP": "1.1.1.1",
			"Forwarded": `for=1.1.1.1;proto=https, for=127.0.0.1;host="shop.example:81";proto=http`,
		}, "1.1.1.1"},
		{"what a trusted proxy passes on unchecked is not believed", "127.0.0.1/32", []string{
			"X-Forwarded-Prefix: //evil", "X-Forwarded-Proto: javascript", "X-Forwarded-Port: x", "X-Forwarded-Host: a b",
		}, map[string]string{
			"X-Forwarded-Prefix": prefix, "X-Forwarded-Proto": "http", "X-Forwarded-Port": "81", "X-Forwarded-Host": "shop.example:81",
		}, "127.0.0.1"},
		{"the right-most untrusted address is the client", "127.0.0.0/8,10.0.0.0/8", []string{
			"X-Forwarded-For: 7.7.7.7, 6.6.6.6, 10.0.0.5",
		}, map[string]string{"X-Real-IP": "6.6.6.6"}, "6.6.6.6"},
		{"addresses come in many forms", "127.0.0.0/8,10.0.0.0/8", []string{
			"X-Forwarded-For: [2001:db8::1]:4711, ::ffff:10.0.0.5, 10.0.0.6:80, [::ffff:10.0.0.7]:80",
		}, map[string]string{"X-Real-IP": "2001:db8::1"}, "2001:db8::1"},
		{"nobody is trusted by a network of the other kind", "::/0", []string{
			"X-Forwarded-For: 6.6.6.6",
		}, map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1"}, "127.0.0.1"},
		{"a hop that is no address is nobody", "127.0.0.0/8", []string{
			"X-Forwarded-For: 6.6.6.6, unknown",
		}, map[string]string{"X-Forwarded-For": "6.6.6.6, unknown, 127.0.0.1", "X-Real-IP": ""}, ""},
		{"all are trusted", "0.0.0.0/0", []string{
			"X-Forwarded-For: 6.6.6.6, 7.7.7.7",
		}, map[string]string{"X-Real-IP": "6.6.6.6"}, "6.6.6.6"},
	}
	up, heads := recording(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := s.gateway(t, setup{instances: []string{up.address()}, config: func(c *config.Config) {
				for cidr := range strings.SplitSeq(tt.trusted, ",") {
					if cidr != "" {
						c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix(cidr))
					}
				}
			}})
			request := "GET " + prefix + "/x HTTP/1.1\r\nHost: shop.example:81\r\n" + strings.Join(tt.lines, "\r\n") + "\r\n\r\n"
			g.request(t, request).is(t, 200, "ok")
			got := <-heads
			for name, want := range tt.want {
				if lines := strings.Join(fieldLines(got, name), "|"); lines != want {
					t.Errorf("%s = %q, want %q", name, lines, want)
				}
			}
			logged := ""
			if c := g.entries.only(t).Client; c.IsValid() {
				logged = c.String()
			}
			if logged != tt.client {
				t.Errorf("logged client = %q, want %q", logged, tt.client)
			}
		})
	}
}
