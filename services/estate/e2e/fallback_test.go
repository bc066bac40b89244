package e2e_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// samples sums the values of a Prometheus exposition's samples whose name and
// labels satisfy want.
func samples(t testing.TB, url string, want func(name, labels string) bool) float64 {
	t.Helper()
	got := call(t, "GET", url, nil, nil)
	if got.status != 200 {
		t.Fatalf("GET %s: status %d", url, got.status)
	}
	var sum float64
	lines := bufio.NewScanner(strings.NewReader(string(got.body)))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		series, value, _ := cutLast(line, " ")
		name, labels, _ := strings.Cut(series, "{")
		if !want(name, labels) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%s: %q: %v", url, line, err)
		}
		sum += v
	}
	return sum
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// fallbacks counts what the gateway's metrics say of calls that gave way.
func (l *lab) fallbacks(t testing.TB) float64 {
	t.Helper()
	return samples(t, l.admin+"/metrics", func(name, labels string) bool {
		return strings.Contains(name, "fallback") && strings.Contains(labels, `"`+labService+`"`)
	})
}

func TestAnAlternateThatCannotBeConnectedToGivesWayVisibly(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.put(t, book{labService, "Y", "http://" + shared.ports.free(t), 0})
	before := l.fallbacks(t)
	const body = "all of the body"
	methods := []string{"GET", "POST", "PUT", "DELETE", "PATCH"}
	for i, method := range methods {
		t.Run(method, func(t *testing.T) {
			l.old.reset()
			id := "fallback-" + method
			got := call(t, method, l.base+"/v1/x?a=%zz", strings.NewReader(body), headers{{correlationHeader, id}})
			if got.status != 200 || string(got.body) != "old" {
				t.Fatalf("status %d, body %q; want the default's answer", got.status, got.body)
			}
			saw := l.old.only(t)
			if saw.method != method || saw.target != "/v1/x?a=%zz" || saw.sum != sum([]byte(body)) {
				t.Errorf("the default saw %s %s with %d bytes", saw.method, saw.target, saw.size)
			}
			// From the third failure on the circuit may be open: then it is not tried.
			reason := strings.TrimPrefix(got.header.Get("X-Route-Fallback"), "wanted=alternate; reason=")
			if reason != "connect" && (i < 3 || reason != "tripped") {
				t.Errorf("X-Route-Fallback = %q", got.header.Values("X-Route-Fallback"))
			}
			for name, want := range map[string]string{"X-Route-Variant": "default", "X-Route-Reason": "draw"} {
				if v := got.header.Get(name); v != want {
					t.Errorf("%s = %q on the answer, want %q", name, v, want)
				}
				if v := saw.header.Get(name); v != want {
					t.Errorf("%s = %q at the upstream, want %q", name, v, want)
				}
			}
			if values := saw.header.Values("X-Route-Fallback"); len(values) != 0 {
				t.Errorf("X-Route-Fallback = %q at the upstream; it is for the client", values)
			}
			line := l.accessLine(t, id)
			if text := fmt.Sprint(line["fallback"]); !strings.Contains(text, "alternate") || !strings.Contains(text, reason) {
				t.Errorf("fallback in the log = %v, want that of the header", line["fallback"])
			}
		})
	}
	poll(t, 5*time.Second, "the counter shows the fallbacks", func() error {
		if n := l.fallbacks(t) - before; n != float64(len(methods)) {
			return fmt.Errorf("counted %v, want %d", n, len(methods))
		}
		return nil
	})
	// When nothing gives way, nothing is said and nothing is counted.
	l.toNew(t)
	counted := l.fallbacks(t)
	if got := call(t, "GET", l.base+"/x", nil, nil); string(got.body) != "new" || got.header.Get("X-Route-Fallback") != "" {
		t.Errorf("body %q, X-Route-Fallback = %q", got.body, got.header.Get("X-Route-Fallback"))
	}
	if n := l.fallbacks(t); n != counted {
		t.Errorf("the counter went from %v to %v", counted, n)
	}
}

func TestAnAlternateWhoseNameDoesNotResolveGivesWay(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.put(t, book{labService, "Y", "http://nobody.invalid:80", 0})
	got := call(t, "GET", l.base+"/x", nil, nil)
	if got.status != 200 || string(got.body) != "old" {
		t.Fatalf("status %d, body %q; want the default's answer", got.status, got.body)
	}
	if v := got.header.Get("X-Route-Fallback"); v != "wanted=alternate; reason=connect" {
		t.Errorf("X-Route-Fallback = %q", v)
	}
}

func TestALongBodyGoesWholeToTheDefault(t *testing.T) {
	t.Parallel()
	const size = 5 * mib
	l := newLab(t, labOptions{})
	l.put(t, book{labService, "Y", "http://" + shared.ports.free(t), 0})
	want := noiseSum(t, size)
	for _, length := range []int64{size, -1} {
		l.old.reset()
		req, err := http.NewRequest("POST", l.base+"/x", noise(size))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		got, err := send(req)
		if err != nil || got.status != 200 {
			t.Fatalf("length %d: status %d, %v: %s", length, got.status, err, got.body)
		}
		if saw := l.old.only(t); saw.sum != want || saw.length != length {
			t.Errorf("length %d: the default saw %d bytes, announced %d, the same %v", length, saw.size, saw.length, saw.sum == want)
		}
	}
}

func TestTheShareOfADeadAlternateGoesToTheDefaultAndTheRestIsUntouched(t *testing.T) {
	est, r := demo(t)
	r.put(t, book{organization, "Y", "http://" + shared.ports.free(t), 5})
	const calls = 400
	oldAnswers, _ := count(t, est.GatewayURL(0)+organizationPath, calls)
	if oldAnswers != calls {
		t.Errorf("OLD answered %d of %d calls", oldAnswers, calls)
	}
	said := 0
	for range 100 {
		if call(t, "GET", est.GatewayURL(0)+organizationPath, nil, nil).header.Get("X-Route-Fallback") != "" {
			said++
		}
	}
	if said < 25 || said > 75 { // five standard deviations around half
		t.Errorf("%d of 100 answers say that the alternate gave way, want about half", said)
	}
}
