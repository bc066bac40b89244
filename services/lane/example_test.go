package lane_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"specialroutes.example/services/lane"
)

// A service that takes part: what came in with the request goes out with every
// call that is made for it.
func Example() {
	inventory := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintf(w, "inventory in lane %s for %s", req.Header.Get("zone"), req.Header.Get("tmx-correlation-id"))
	}))
	defer inventory.Close()

	client := &http.Client{Transport: &lane.Transport{}}
	defer client.CloseIdleConnections()
	shop := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		call, err := http.NewRequestWithContext(req.Context(), http.MethodGet, inventory.URL, nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		res, err := client.Do(call)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		_, _ = io.Copy(w, res.Body)
	})
	handler := lane.Middleware(lane.Options{Headers: []string{"zone"}})(shop)

	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.Header.Set("zone", "blue")
	req.Header.Set("tmx-correlation-id", "c-1")
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, req)
	fmt.Println(rec.Body)
	// Output: inventory in lane blue for c-1
}
