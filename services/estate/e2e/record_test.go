package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// full is the address of a record in the full view, or of what belongs to it.
func (r routes) full(service string, below ...string) string {
	return r.url + "/v1/routes/" + strings.Join(append([]string{url.PathEscape(service)}, below...), "/")
}

// sendJSON sends a document, with more header fields if there are any.
func sendJSON(t testing.TB, method, url, document string, more ...[2]string) answer {
	t.Helper()
	return call(t, method, url, strings.NewReader(document), append(headers{{"Content-Type", jsonType}}, more...))
}

// save writes a record and does not wait until it is in force.
func (r routes) save(t testing.TB, service, document string) answer {
	t.Helper()
	got := sendJSON(t, "PUT", r.full(service), document)
	if got.status != 200 && got.status != 201 {
		t.Fatalf("PUT %s %.500s: status %d: %s", service, document, got.status, got.body)
	}
	return got
}

// decoded reads an answer's document.
func decoded[T any](t testing.TB, got answer) T {
	t.Helper()
	var doc T
	if err := json.Unmarshal(got.body, &doc); err != nil {
		t.Fatalf("%v: status %d: %.500s", err, got.status, got.body)
	}
	return doc
}

// set writes a record of the lab's service and waits until it is in force at every
// gateway.
func (l *lab) set(t testing.TB, document string) {
	t.Helper()
	l.save(t, labService, document)
	l.inForce(t)
}

// record is a record of the lab's service with two variants, old, which is the
// default on the service's own instance, and new, which is an endpoint. More
// members are JSON texts.
func (l *lab) record(oldWeight, newWeight int64, members ...string) string {
	return recordOf(labService, []string{
		fmt.Sprintf(`{"name":"old","weight":%d}`, oldWeight),
		fmt.Sprintf(`{"name":"new","weight":%d,"endpoint":%q}`, newWeight, l.new.URL),
	}, members...)
}

// recordOf is an active record whose default is the variant named old.
func recordOf(service string, variants []string, members ...string) string {
	text := fmt.Sprintf(`{"service":%q,"active":true,"default":"old","variants":[%s]`, service, strings.Join(variants, ","))
	for _, member := range members {
		text += "," + member
	}
	return text + "}"
}

// echo answers with the request target, so that a call tells which base path of an
// endpoint it came to.
func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) }

// routed is what an answer says of its way.
type routed struct{ variant, reason string }

func routeOf(got answer) routed {
	return routed{got.header.Get("X-Route-Variant"), got.header.Get("X-Route-Reason")}
}

// wantRouted checks that a call was answered, by this variant and for this reason.
func wantRouted(t testing.TB, got answer, variant, reason string) {
	t.Helper()
	if got.status != 200 {
		t.Errorf("status = %d: %.300s", got.status, got.body)
	}
	if r := routeOf(got); r != (routed{variant, reason}) {
		t.Errorf("answered by %q for the reason %q, want %q for %q", r.variant, r.reason, variant, reason)
	}
}

// get makes a call below the lab's prefix.
func (l *lab) get(t testing.TB, target string, h ...[2]string) answer {
	t.Helper()
	return call(t, "GET", l.base+target, nil, h)
}

// twin is a second gateway of a lab: it follows the same specialroutes and leads to
// the same upstreams. The lab waits for it too when it waits for a record.
func (l *lab) twin(t testing.TB, id string, config map[string]string) *lab {
	t.Helper()
	changes := map[string]string{"id": id}
	for name, text := range config {
		changes[name] = text
	}
	other := newLab(t, labOptions{records: l.url, old: l.old, new: l.new, config: changes})
	l.admins = append(l.admins, other.admin)
	other.admins = l.admins
	return other
}

// each calls f for 0 to n-1, eight at a time, and returns what it gives in order.
func each[T any](t testing.TB, n int, f func(i int) (T, error)) []T {
	t.Helper()
	results, errs := make([]T, n), make([]error, n)
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range next {
				results[i], errs[i] = f(i)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("%.2000s", err.Error())
	}
	return results
}

// tally makes n calls and counts the variants that answered; every call must be
// answered with 200, and nothing may give way.
func tally(t testing.TB, url string, n int, h ...[2]string) map[string]int {
	t.Helper()
	counted := map[string]int{}
	for _, variant := range each(t, n, func(int) (string, error) { return variantOf(url, h...) }) {
		counted[variant]++
	}
	return counted
}

// variantOf makes one call and returns the variant that answered.
func variantOf(url string, h ...[2]string) (string, error) {
	got, err := do("GET", url, nil, h)
	switch {
	case err != nil:
		return "", err
	case got.status != 200:
		return "", fmt.Errorf("GET %s: status %d: %.300s", url, got.status, got.body)
	case got.header.Get("X-Route-Fallback") != "":
		return "", fmt.Errorf("GET %s: X-Route-Fallback = %q", url, got.header.Get("X-Route-Fallback"))
	}
	return got.header.Get("X-Route-Variant"), nil
}
