package e2e_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"specialroutes.example/services/estate"
)

// The call of the book, and the one that licensing makes for it.
const (
	bookOrganization = "e254f8c-c442-4ebe-a82a-e2fc1d1ff78a"
	bookLicense      = "f3831f8c-c338-4ebe-a82a-e2fc1d1ff78a"
	licensingPath    = "/api/licensing/v1/organizations/" + bookOrganization + "/licenses/" + bookLicense
	organizationPath = "/api/organization/v1/organizations/" + bookOrganization
	organization     = "organizationservice"
)

// bookCalls are the two ways to see the split: in the answer of licensing, which
// asks for the organization through the gateway, and in the organization's own.
var bookCalls = []struct{ name, path string }{
	{"through /api/licensing", licensingPath},
	{"directly through /api/organization", organizationPath},
}

// bookRecord is the record of the demo, with a weight.
func bookRecord(est *estate.Estate, weight int) book {
	return book{organization, "Y", est.NewURL(), weight}
}

// who tells which organization service gave an answer.
func who(got answer) (string, error) {
	isOld := strings.Contains(string(got.body), `"OLD::Mark Balster"`)
	isNew := strings.Contains(string(got.body), `"NEW::Mark Balster"`)
	switch {
	case got.status != 200:
		return "", fmt.Errorf("status %d: %.300s", got.status, got.body)
	case isOld == isNew:
		return "", fmt.Errorf("contactName is neither OLD::Mark Balster nor NEW::Mark Balster: %.300s", got.body)
	case isOld:
		return "OLD", nil
	default:
		return "NEW", nil
	}
}

// ask makes one call and says who answered.
func ask(url string) (string, error) {
	got, err := do("GET", url, nil, nil)
	if err != nil {
		return "", err
	}
	return who(got)
}

// count makes n calls, eight at a time, and counts the answers of each service.
func count(t testing.TB, url string, n int) (oldAnswers, newAnswers int) {
	t.Helper()
	var wg sync.WaitGroup
	todo, answers := make(chan struct{}, n), make(chan string, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	for range 8 {
		wg.Go(func() {
			for range todo {
				from, err := ask(url)
				if err != nil {
					t.Errorf("GET %s: %v", url, err)
				}
				answers <- from
			}
		})
	}
	wg.Wait()
	close(answers)
	for from := range answers {
		switch from {
		case "OLD":
			oldAnswers++
		case "NEW":
			newAnswers++
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return oldAnswers, newAnswers
}

func TestTwoThousandCallsOfTheBooksURLAreSplitInHalf(t *testing.T) {
	est, r := demo(t)
	r.put(t, bookRecord(est, 5))
	const calls, share = 2000, 0.5
	fiveDeviations := 5 * math.Sqrt(calls*share*(1-share))
	for _, c := range bookCalls {
		t.Run(c.name, func(t *testing.T) {
			oldAnswers, newAnswers := count(t, est.GatewayURL(0)+c.path, calls)
			if off := math.Abs(float64(newAnswers) - calls*share); off > fiveDeviations {
				t.Errorf("OLD %d, NEW %d: %.0f away from half, allowed %.0f", oldAnswers, newAnswers, off, fiveDeviations)
			}
		})
	}
}

func TestTheSplitFollowsTheWeightOfTheBook(t *testing.T) {
	est, r := demo(t)
	// weight is the tenths that stay on the default; weight 8 tells a comparison
	// that is turned round from the right one, which weight 5 does not.
	for _, test := range []struct {
		weight int
		share  float64 // of the alternate
	}{{8, 0.2}, {2, 0.8}} {
		t.Run(fmt.Sprintf("weight %d", test.weight), func(t *testing.T) {
			r.put(t, bookRecord(est, test.weight))
			const calls = 1000
			_, newAnswers := count(t, est.GatewayURL(0)+organizationPath, calls)
			allowed := 5 * math.Sqrt(calls*test.share*(1-test.share))
			if off := math.Abs(float64(newAnswers) - calls*test.share); off > allowed {
				t.Errorf("NEW %d of %d: %.0f away from %.1f, allowed %.0f", newAnswers, calls, off, test.share, allowed)
			}
		})
	}
}

func TestOneSideOnly(t *testing.T) {
	est, r := demo(t)
	inactive := bookRecord(est, 0)
	inactive.Active = "N"
	for _, test := range []struct {
		name string
		set  func(t *testing.T)
		want string
	}{
		{"weight 10 sends nobody to NEW", func(t *testing.T) { r.put(t, bookRecord(est, 10)) }, "OLD"},
		{"weight 0 sends everybody to NEW", func(t *testing.T) { r.put(t, bookRecord(est, 0)) }, "NEW"},
		{"active N sends everybody to OLD", func(t *testing.T) { r.put(t, inactive) }, "OLD"},
		{"no record sends everybody to OLD", func(t *testing.T) { r.remove(t, organization) }, "OLD"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.set(t)
			for _, c := range bookCalls {
				oldAnswers, newAnswers := count(t, est.GatewayURL(0)+c.path, 1000)
				if (test.want == "OLD" && newAnswers != 0) || (test.want == "NEW" && oldAnswers != 0) {
					t.Errorf("%s: OLD %d, NEW %d, want only %s", c.name, oldAnswers, newAnswers, test.want)
				}
			}
		})
	}
}

func TestAnAnswerSaysItsVariantAndReason(t *testing.T) {
	est, r := demo(t)
	inactive := bookRecord(est, 0)
	inactive.Active = "N"
	for _, test := range []struct {
		name            string
		set             func()
		variant, reason string
	}{
		{"drawn to the default", func() { r.put(t, bookRecord(est, 10)) }, "default", "draw"},
		{"drawn to the alternate", func() { r.put(t, bookRecord(est, 0)) }, "alternate", "draw"},
		{"not active", func() { r.put(t, inactive) }, "default", "inactive"},
		{"no record", func() { r.remove(t, organization) }, "default", "no-record"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.set()
			got := call(t, "GET", est.GatewayURL(0)+organizationPath, nil, nil)
			if v := got.header.Get("X-Route-Variant"); v != test.variant {
				t.Errorf("X-Route-Variant = %q, want %q", v, test.variant)
			}
			if v := got.header.Get("X-Route-Reason"); v != test.reason {
				t.Errorf("X-Route-Reason = %q, want %q", v, test.reason)
			}
			if v := got.header.Values("X-Route-Fallback"); len(v) != 0 {
				t.Errorf("X-Route-Fallback = %q, but nothing gave way", v)
			}
		})
	}
}

func TestAPutIsInForceInUnderASecond(t *testing.T) {
	est, r := demo(t)
	r.put(t, bookRecord(est, 10))
	const changes = 30
	var took []time.Duration
	for i := range changes {
		b, want := bookRecord(est, 0), "NEW"
		if i%2 == 1 {
			b, want = bookRecord(est, 10), "OLD"
		}
		r.write(t, b)
		written := time.Now()
		poll(t, 10*time.Second, "the change is in force", func() error {
			from, err := ask(est.GatewayURL(0) + organizationPath)
			if err == nil && from != want {
				err = fmt.Errorf("%s answers, want %s", from, want)
			}
			return err
		})
		took = append(took, time.Since(written))
	}
	slices.Sort(took)
	median, worst := took[changes/2], took[changes-1]
	t.Logf("from the answer to the PUT until it is in force: median %v, worst %v", median, worst)
	// One change in thirty may meet a pause of the machine that runs the test.
	if p := took[changes-2]; p >= time.Second {
		t.Errorf("all but one change are in force after %v, want under a second", p)
	}
	if worst >= 3*time.Second {
		t.Errorf("the slowest change took %v", worst)
	}
}
