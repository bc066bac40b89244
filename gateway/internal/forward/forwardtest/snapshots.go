package forwardtest

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/services/routing"
)

// Row 94: two hosts with a service each, whose records change while both are
// called. Every answer comes from the host's own upstream, and what the upstream
// was told is what the client is told: each request sees one state.
func (s *suite) testSnapshots(t *testing.T) {
	var current atomic.Pointer[routes]
	hosts := []string{"a.example", "b.example"}
	var targets [2][2]*upstream // by host and variant
	for h := range hosts {
		for v, name := range []string{"old", "new"} {
			targets[h][v] = newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, hosts[h]+" "+name+" "+r.Header.Get("X-Route-Variant"))
			})
		}
	}
	states := make([]*routes, 2)
	for v := range states {
		var records []*routing.Record
		for h, host := range hosts {
			records = append(records, onlyVariant(host[:1], v, targets[h][0].URL, targets[h][1].URL))
		}
		states[v] = new(compile(t, records))
	}
	current.Store(states[0])
	g := s.gateway(t, setup{
		current: func() filter.Records { return *current.Load() },
		config: func(c *config.Config) {
			c.Routes = nil
			for _, host := range hosts {
				c.Routes = append(c.Routes, config.Route{Host: host, Prefix: prefix, Service: host[:1]})
			}
		},
	})
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() { g.dial(t).callUntil(stop, hosts[worker%2]) })
	}
	for i := range 50 {
		current.Store(states[i%2])
		time.Sleep(10 * time.Millisecond) // the pace of the changes is what is tested
	}
	close(stop)
	workers.Wait()
	for h := range hosts {
		if o, n := targets[h][0].calls.Load(), targets[h][1].calls.Load(); o == 0 || n == 0 {
			t.Errorf("%s: old was called %d times, new %d; want both", hosts[h], o, n)
		}
	}
}

// callUntil calls a host until stop is closed, and fails the test at an answer
// that is not of that host, or not of the variant that it names.
func (c *client) callUntil(stop <-chan struct{}, host string) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		_, _ = io.WriteString(c.Conn, "GET "+prefix+"/x HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		res, err := http.ReadResponse(c.r, nil)
		if err != nil {
			c.t.Error(err)
			return
		}
		body, err := io.ReadAll(res.Body)
		variant := res.Header.Get("X-Route-Variant")
		if want := host + " " + variant + " " + variant; err != nil || string(body) != want {
			c.t.Errorf("request %d to %s: answer = %q, %v; want %q", i, host, body, err, want)
			return
		}
	}
}

// onlyVariant is a record of two endpoints that gives all weight to one.
func onlyVariant(service string, v int, old, latest string) *routing.Record {
	return &routing.Record{
		Service: service, Active: new(true), Default: new("old"),
		Variants: []routing.Variant{
			{Name: "old", Weight: new(int64(1 - v)), Endpoint: &old},
			{Name: "new", Weight: new(int64(v)), Endpoint: &latest},
		},
	}
}
