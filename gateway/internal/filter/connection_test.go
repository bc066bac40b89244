package filter_test

import (
	"errors"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/gateway/internal/registry/static"
	"specialroutes.example/gateway/internal/table"
)

// What is kept of a connection makes no difference to what its requests become.
func TestAConnectionIsRememberedWithoutADifference(t *testing.T) {
	t.Parallel()
	c := config.Default()
	tab, err := table.New([]config.Route{{Prefix: "/", Service: "x", Timeouts: c.Timeouts}})
	if err != nil {
		t.Fatal(err)
	}
	chain := filter.Standard(filter.Settings{
		Table:     tab,
		Records:   func() filter.Records { return oneRecord{} },
		Instances: static.New(map[string][]config.Instance{"x": {{ID: "i", Address: "127.0.0.1:1"}}}).Load,
		Balancer:  balance.New(balance.Options{Now: time.Now}),
		Draw:      func(sum int64) int64 { return sum },
		NewID:     func() string { return "made" },
		Limits:    c.Limits, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	ask := func(known *filter.Connection, remote, host, claimed string) (http.Header, string) {
		h := http.Header{}
		if claimed != "" {
			h["X-Forwarded-For"] = []string{claimed}
		}
		ex := &filter.Exchange{Connection: known, Request: &http.Request{
			Method: http.MethodGet, RequestURI: "/", Host: host, RemoteAddr: remote, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		}}
		err := chain.Request(ex)
		if refusal := (*filter.Refusal)(nil); errors.As(err, &refusal) {
			return h, refusal.Code
		} else if err != nil {
			t.Fatal(err)
		}
		return h, ex.Client.String()
	}
	var known filter.Connection
	for _, remote := range []string{"10.1.1.1:1", "192.0.2.1:2", "[2001:db8::1]:3", "nobody"} {
		for _, host := range []string{"a", "a", "b:80", "", "-bad-", "b:80", "[::1]:5", "a"} {
			for _, claimed := range []string{"", "198.51.100.7", "10.2.2.2, 198.51.100.7"} {
				h, got := ask(&known, remote, host, claimed)
				fresh, want := ask(nil, remote, host, claimed)
				if got != want {
					t.Errorf("from %s for %q: %s, and with nothing kept %s", remote, host, got, want)
				}
				for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
					if h.Get(name) != fresh.Get(name) {
						t.Errorf("from %s for %q: %s %q, and with nothing kept %q", remote, host, name, h.Get(name), fresh.Get(name))
					}
				}
			}
		}
	}
}
