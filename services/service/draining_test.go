package service_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"specialroutes.example/services/service"
)

func TestDraining_SendsClientsAway(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		draining := new(service.Draining)
		server := httptest.NewUnstartedServer(draining.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ok")
		})))
		server.EnableHTTP2 = http2
		server.StartTLS()
		defer server.Close()
		// reused makes a request and reports whether it took the connection of the one before.
		reused := func() bool {
			var is bool
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				GotConn: func(c httptrace.GotConnInfo) { is = c.Reused },
			})
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if _, err := io.Copy(io.Discard, res.Body); err != nil || (res.ProtoMajor == 2) != http2 {
				t.Fatalf("answer over %s, %v", res.Proto, err)
			}
			return is
		}
		reused()
		if !reused() {
			t.Errorf("HTTP/2 %t: the connection is not kept before the drain", http2)
		}
		draining.Begin()
		draining.Begin()
		reused() // is told to go
		if reused() {
			t.Errorf("HTTP/2 %t: a client stays on its connection while draining", http2)
		}
		if n := draining.InFlight(); n != 0 {
			t.Errorf("%d requests in flight, want 0", n)
		}
	}
}
