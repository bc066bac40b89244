package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// book is the record of the book, as it crosses the socket.
type book struct {
	ServiceName string `json:"serviceName"`
	Active      string `json:"active"`
	Endpoint    string `json:"endpoint"`
	Weight      int    `json:"weight"` // tenths that stay on the default
}

// routes writes and reads records at one specialroutes, and knows the gateways
// that follow it.
type routes struct {
	url    string   // of specialroutes
	admins []string // of the gateways
}

// markers numbers the records that inForce writes; each gets a name of its own.
var markers atomic.Int64

func (r routes) of(service string) string { return r.url + "/v1/route/abtesting/" + service }

// try writes a record and returns what came back.
func (r routes) try(b book) (answer, error) {
	body, err := json.Marshal(b)
	if err != nil {
		return answer{}, err
	}
	return do("PUT", r.of(b.ServiceName), bytes.NewReader(body), headers{{"Content-Type", "application/json"}})
}

// put writes a record and waits until it is in force at every gateway.
func (r routes) put(t testing.TB, b book) {
	t.Helper()
	r.write(t, b)
	r.inForce(t)
}

// write writes a record and does not wait.
func (r routes) write(t testing.TB, b book) {
	t.Helper()
	got, err := r.try(b)
	if err != nil {
		t.Fatalf("PUT %+v: %v", b, err)
	}
	if got.status != 200 && got.status != 201 {
		t.Fatalf("PUT %+v: status %d: %s", b, got.status, got.body)
	}
}

// remove deletes a record, which may be absent, and waits as put does.
func (r routes) remove(t testing.TB, service string) {
	t.Helper()
	if got := call(t, "DELETE", r.of(service), nil, nil); got.status != 204 && got.status != 200 && got.status != 404 {
		t.Fatalf("DELETE %s: status %d: %s", service, got.status, got.body)
	}
	r.inForce(t)
}

// inForce waits until every gateway has applied all that was written before. It
// writes one more record, of a service that no gateway routes to, and waits until
// the gateway lists it: revisions are applied in the order they were written.
func (r routes) inForce(t testing.TB) {
	t.Helper()
	if len(r.admins) == 0 {
		return
	}
	name := fmt.Sprintf("marker-%d", markers.Add(1))
	r.write(t, book{name, "N", "http://127.0.0.1:9", 5})
	for _, admin := range r.admins {
		poll(t, 15*time.Second, "the gateway lists "+name, func() error {
			got, err := do("GET", admin+"/records", nil, nil)
			if err != nil {
				return err
			}
			if !strings.Contains(string(got.body), `"`+name+`"`) {
				return fmt.Errorf("%s/records does not show it: %.2000s", admin, got.body)
			}
			return nil
		})
	}
}

// read returns the answer to GET of a record, byte for byte.
func (r routes) read(t testing.TB, service string) answer {
	t.Helper()
	return call(t, "GET", r.of(service), nil, nil)
}

// readBook returns a stored record.
func (r routes) readBook(t testing.TB, service string) book {
	t.Helper()
	got := r.read(t, service)
	if got.status != 200 {
		t.Fatalf("GET %s: status %d: %s", service, got.status, got.body)
	}
	var b book
	if err := json.Unmarshal(got.body, &b); err != nil {
		t.Fatalf("GET %s: %v: %s", service, err, got.body)
	}
	return b
}
