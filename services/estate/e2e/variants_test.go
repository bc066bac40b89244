package e2e_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// spread is a record of the variants old, v1, v2 and so on: old is the service's
// own instance, vN an endpoint with the path /vN.
func (l *lab) spread(members []string, weights ...int64) string {
	variants := []string{fmt.Sprintf(`{"name":"old","weight":%d}`, weights[0])}
	for i, w := range weights[1:] {
		variants = append(variants, fmt.Sprintf(`{"name":"v%d","weight":%d,"endpoint":"%s/v%d"}`, i+1, w, l.new.URL, i+1))
	}
	return recordOf(labService, variants, members...)
}

// landed returns the variant that an answer of a spread names, after it has
// checked that the call went where that variant lives.
func landed(got answer) (string, error) {
	variant, body := got.header.Get("X-Route-Variant"), string(got.body)
	want := "/" + variant + "/x"
	if variant == "old" {
		want = "old"
	}
	if got.status != 200 || body != want {
		return "", fmt.Errorf("variant %q: status %d, body %.200q, want %q", variant, got.status, body, want)
	}
	return variant, nil
}

// wantShares checks counts against weights, with five standard deviations. A
// weight of 0 is nobody, and one that has all is everybody.
func wantShares(t testing.TB, counted map[string]int, weights map[string]int64) {
	t.Helper()
	var calls, sum float64
	for _, n := range counted {
		calls += float64(n)
	}
	for _, w := range weights {
		sum += float64(w)
	}
	for variant, w := range weights {
		p := float64(w) / sum
		allowed := 5 * math.Sqrt(calls*p*(1-p))
		if off := math.Abs(float64(counted[variant]) - calls*p); off > allowed {
			t.Errorf("%s has %d of %.0f calls, want %.1f, at most %.1f away: %v", variant, counted[variant], calls, calls*p, allowed, counted)
		}
	}
	for variant := range counted {
		if _, ok := weights[variant]; !ok {
			t.Errorf("%d calls went to %q, which is no variant", counted[variant], variant)
		}
	}
}

func TestSharesFollowTheWeights(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{new: newUpstream(t, "new", echo)})
	for _, test := range []struct {
		weights []int64
		calls   int
	}{
		{[]int64{1, 2, 3, 94}, 4000},
		{[]int64{0, 1}, 1000},
		{[]int64{1, 0}, 1000},
		{[]int64{5, 5}, 1000},
		{[]int64{1, 1}, 1000},
		{[]int64{2147483646, 1}, 500},
	} {
		t.Run(fmt.Sprint(test.weights), func(t *testing.T) {
			l.set(t, l.spread(nil, test.weights...))
			counted, want := map[string]int{}, map[string]int64{"old": test.weights[0]}
			for i, w := range test.weights[1:] {
				want[fmt.Sprintf("v%d", i+1)] = w
			}
			for _, variant := range each(t, test.calls, func(int) (string, error) {
				got, err := do("GET", l.base+"/x", nil, nil)
				if err != nil {
					return "", err
				}
				return landed(got)
			}) {
				counted[variant]++
			}
			wantShares(t, counted, want)
		})
	}
}

func TestTheVariantAndTheReasonAreInTheAnswerAtTheUpstreamAndInTheLog(t *testing.T) {
	t.Parallel()
	// What an upstream says of the route is not the gateway's word.
	lying := func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range routeHeaders {
			w.Header().Set(name, "lie")
		}
		_, _ = io.WriteString(w, "ok")
	}
	l := newLab(t, labOptions{old: newUpstream(t, "old", lying), new: newUpstream(t, "new", lying)})
	hiding := l.twin(t, "hiding", map[string]string{"exposeRoute": "false"})
	l.set(t, l.record(1, 0, `"rules":[{"name":"testers","match":[{"on":"header","name":"tmx-user-id","in":["u-17"]}],"variant":"new"}]`))
	for _, test := range []struct {
		name, variant, reason string
		up                    *upstream
		h                     headers
	}{
		{"by the draw", "old", "draw", l.old, nil},
		{"by a rule", "new", "rule:testers", l.new, headers{{"tmx-user-id", "u-17"}}},
		{"whatever the client says", "old", "draw", l.old, headers{
			{"X-Route-Variant", "new"}, {"X-Route-Reason", "override"}, {"X_Route_Variant", "new"}, {"Connection", "X-Route-Variant"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.up.reset()
			id := strings.ReplaceAll(test.name, " ", "-")
			got := l.get(t, "/x", append(test.h, [2]string{correlationHeader, id})...)
			wantRouted(t, got, test.variant, test.reason)
			saw := test.up.only(t)
			for name, want := range map[string]string{"X-Route-Variant": test.variant, "X-Route-Reason": test.reason} {
				if v := saw.header.Values(name); len(v) != 1 || v[0] != want {
					t.Errorf("%s = %q at the upstream, want %q once", name, v, want)
				}
				if v := got.header.Values(name); len(v) != 1 {
					t.Errorf("%s = %q on the answer, want it once", name, v)
				}
			}
			for _, name := range []string{"X-Route-Fallback", "X-Route-Override-Invalid"} {
				if v := got.header.Values(name); len(v) != 0 {
					t.Errorf("%s = %q on the answer, want none", name, v)
				}
			}
			if v := saw.header.Values("X_Route_Variant"); len(v) != 0 {
				t.Errorf("X_Route_Variant = %q at the upstream, want none", v)
			}
			line := l.accessLine(t, id)
			if line["variant"] != test.variant || line["reason"] != test.reason {
				t.Errorf("the log says variant %v, reason %v", line["variant"], line["reason"])
			}
			test.up.reset()
			hidden := hiding.get(t, "/x", append(test.h, [2]string{"Route-Override", "rubbish"})...)
			for _, name := range routeHeaders {
				if v := hidden.header.Values(name); len(v) != 0 {
					t.Errorf("%s = %q on the answer of a gateway that hides it", name, v)
				}
			}
			if v := test.up.only(t).header.Get("X-Route-Variant"); v != test.variant {
				t.Errorf("X-Route-Variant = %q at the upstream of a gateway that hides it from clients", v)
			}
		})
	}
}

// routeHeaders are what the gateway says on an answer of the call's way.
var routeHeaders = []string{"X-Route-Variant", "X-Route-Reason", "X-Route-Fallback", "X-Route-Override-Invalid"}

func TestAVariantLivesInAnotherServiceOrOnLabelledInstancesOrAtAnEndpoint(t *testing.T) {
	t.Parallel()
	other, labelled, plain := newUpstream(t, "other", nil), newUpstream(t, "labelled", nil), newUpstream(t, "plain", nil)
	l := newLab(t, labOptions{old: plain, new: newUpstream(t, "new", echo), config: map[string]string{
		"instances": fmt.Sprintf("{%s: [{id: plain, address: %q}, {id: labelled, address: %q, labels: {version: two}}], other-service: [{id: other, address: %q}]}",
			labService, plain.addr(), labelled.addr(), other.addr()),
	}})
	// The rules lead to each by name; the record of the other service is not asked.
	l.save(t, "other-service", recordOf("other-service", []string{
		`{"name":"old","weight":0}`, fmt.Sprintf(`{"name":"new","weight":1,"endpoint":%q}`, l.new.URL),
	}))
	var rules []string
	for _, name := range []string{"old", "of-another", "by-label", "at-endpoint"} {
		rules = append(rules, fmt.Sprintf(`{"name":"to-%s","match":[{"on":"query","name":"to","in":[%q]}],"variant":%q}`, name, name, name))
	}
	l.set(t, recordOf(labService, []string{
		`{"name":"old","weight":1}`,
		`{"name":"of-another","weight":0,"service":"other-service"}`,
		`{"name":"by-label","weight":0,"selector":{"version":"two"}}`,
		fmt.Sprintf(`{"name":"at-endpoint","weight":0,"endpoint":"%s/base%%2Fa"}`, l.new.URL),
	}, `"rules":[`+strings.Join(rules, ",")+`]`))
	for variant, body := range map[string]string{
		"old": "plain", "of-another": "other", "by-label": "labelled", "at-endpoint": "/base%2Fa/x?to=at-endpoint",
	} {
		for range 4 { // own instances are those that no selector claims, each time
			got := l.get(t, "/x?to="+variant)
			wantRouted(t, got, variant, "rule:to-"+variant)
			if string(got.body) != body {
				t.Errorf("%s: answered by %.100q, want %q", variant, got.body, body)
			}
		}
	}
}

func TestADeadVariantOfWeight0DisturbsNobody(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for name, place := range map[string]string{
		"nothing listens there":     `"endpoint":"http://` + shared.ports.free(t) + `"`,
		"its name does not resolve": `"endpoint":"http://nobody.invalid"`,
		"no instance has the label": `"selector":{"version":"none"}`,
		"the service has none":      `"service":"nobody-service"`,
	} {
		t.Run(name, func(t *testing.T) {
			l.set(t, recordOf(labService, []string{`{"name":"old","weight":1}`, `{"name":"new","weight":0,` + place + `}`}, `"onUnavailable":"fail"`))
			if counted := tally(t, l.base+"/x", 300); counted["old"] != 300 {
				t.Errorf("%v, want all at old", counted)
			}
		})
	}
}

func TestAVariantThatCannotBeReachedFailsAloneAndNeverItsSiblings(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for name, place := range map[string]string{
		"nothing listens there":     `"endpoint":"http://` + shared.ports.free(t) + `"`,
		"its name does not resolve": `"endpoint":"http://nobody.invalid"`,
		"no instance has the label": `"selector":{"version":"none"}`,
	} {
		t.Run(name, func(t *testing.T) {
			l.set(t, recordOf(labService, []string{
				`{"name":"old","weight":2}`, fmt.Sprintf(`{"name":"new","weight":2,"endpoint":%q}`, l.new.URL),
				`{"name":"dead","weight":1,` + place + `}`,
			}, `"onUnavailable":"fail"`))
			const calls = 400
			counted := map[string]int{}
			for _, got := range each(t, calls, func(int) (answer, error) { return do("GET", l.base+"/x", nil, nil) }) {
				variant := got.header.Get("X-Route-Variant")
				if (got.status == 200) != (variant != "dead") {
					t.Errorf("variant %q: status %d: %.200s", variant, got.status, got.body)
				}
				if got.status != 200 && got.status != 502 && got.status != 503 {
					t.Errorf("status %d: %.200s", got.status, got.body)
				}
				counted[variant]++
			}
			wantShares(t, counted, map[string]int64{"old": 2, "new": 2, "dead": 1})
		})
	}
}

// instancesOf is the YAML of a service's instances: so many plain ones, and so
// many with the label version=two, all of them at one address each.
func instancesOf(plain, labelled []*upstream) string {
	var list []string
	for i, u := range plain {
		list = append(list, fmt.Sprintf("{id: plain-%d, address: %q}", i, u.addr()))
	}
	for i, u := range labelled {
		list = append(list, fmt.Sprintf("{id: labelled-%d, address: %q, labels: {version: two}}", i, u.addr()))
	}
	return fmt.Sprintf("{%s: [%s]}", labService, strings.Join(list, ", "))
}

func upstreams(t testing.TB, n int, name string) []*upstream {
	t.Helper()
	var list []*upstream
	for i := range n {
		list = append(list, newUpstream(t, fmt.Sprintf("%s-%d", name, i), nil))
	}
	return list
}

func TestAShareDoesNotDependOnHowManyInstancesThereAre(t *testing.T) {
	t.Parallel()
	for _, count := range [][2]int{{9, 2}, {1, 9}} {
		plain, labelled := upstreams(t, count[0], "plain"), upstreams(t, count[1], "labelled")
		l := newLab(t, labOptions{config: map[string]string{"instances": instancesOf(plain, labelled)}})
		l.set(t, recordOf(labService, []string{`{"name":"old","weight":80}`, `{"name":"new","weight":20,"selector":{"version":"two"}}`}))
		wantShares(t, tally(t, l.base+"/x", 1000), map[string]int64{"old": 80, "new": 20})
		for _, u := range append(plain, labelled...) {
			if u.count() == 0 {
				t.Errorf("of %v instances %s was never asked", count, u.name)
			}
		}
	}
}

func TestSharesHoldAfterAHundredRewritesAndWhileAVariantGoesAndComes(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for i := range 100 {
		l.save(t, labService, l.record(int64(1+i%7), int64(1+i%3)))
	}
	l.set(t, l.record(8, 2))
	wantShares(t, tally(t, l.base+"/x", 1000), map[string]int64{"old": 8, "new": 2})

	// While nothing listens at new, its share is still its share: it gives way.
	l.set(t, strings.Replace(l.record(8, 2), l.new.URL, "http://"+shared.ports.free(t), 1))
	counted := map[string]int{}
	for _, got := range each(t, 1000, func(int) (answer, error) { return do("GET", l.base+"/x", nil, nil) }) {
		wanted := got.header.Get("X-Route-Variant")
		if fallback := got.header.Get("X-Route-Fallback"); fallback != "" {
			wanted = strings.TrimPrefix(strings.Split(fallback, ";")[0], "wanted=")
		}
		if got.status != 200 {
			t.Errorf("status %d: %.200s", got.status, got.body)
		}
		counted[wanted]++
	}
	wantShares(t, counted, map[string]int64{"old": 8, "new": 2})

	l.set(t, l.record(8, 2))
	wantShares(t, tally(t, l.base+"/x", 1000), map[string]int64{"old": 8, "new": 2})
}

func TestRoundRobinGoesOnWhileRecordsAreRewritten(t *testing.T) {
	t.Parallel()
	plain := upstreams(t, 4, "plain")
	l := newLab(t, labOptions{config: map[string]string{"instances": instancesOf(plain, nil)}})
	l.set(t, l.record(1, 0))
	const calls = 400
	for i := range calls {
		if i%4 == 0 { // another service's record, and the routed one's too
			l.save(t, "other-service", fmt.Sprintf(`{"service":"other-service","active":true,"owner":"o-%d"}`, i))
		}
		if i%20 == 10 {
			l.save(t, labService, l.record(1, 0, fmt.Sprintf(`"owner":"o-%d"`, i)))
		}
		if got := l.get(t, "/x"); got.status != 200 {
			t.Fatalf("call %d: status %d: %s", i, got.status, got.body)
		}
	}
	for _, u := range plain {
		if n, even := float64(u.count()), float64(calls)/float64(len(plain)); math.Abs(n-even) > 0.05*even {
			t.Errorf("%s answered %.0f calls, want %.0f within 5 %%", u.name, n, even)
		}
	}
}

func TestNoCallIsLostWhileVariantsAreRenamedAndRecordsComeAndGo(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.set(t, l.record(1, 1))
	stop := make(chan struct{})
	var calls atomic.Int64
	failures := make(chan error, 1)
	done := make(chan struct{})
	known := map[string]bool{"old": true, "new": true, "default": true}
	for i := range 60 {
		known[fmt.Sprintf("name-%d", i)] = true
	}
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			variant, err := variantOf(l.base + "/x")
			if err == nil && !known[variant] {
				err = fmt.Errorf("answered by %q, which no record ever named", variant)
			}
			if err != nil {
				failures <- err
				return
			}
			calls.Add(1)
		}
	}()
	for i := range 60 {
		name := fmt.Sprintf("name-%d", i)
		l.save(t, labService, strings.ReplaceAll(l.record(1, 1), `"new"`, `"`+name+`"`))
		if i%10 == 9 {
			if got := call(t, "DELETE", l.full(labService), nil, nil); got.status != http.StatusOK {
				t.Errorf("DELETE: status %d: %s", got.status, got.body)
			}
		}
	}
	l.set(t, l.record(0, 1))
	close(stop)
	<-done
	select {
	case err := <-failures:
		t.Error(err)
	default:
	}
	if calls.Load() < 20 {
		t.Errorf("only %d calls were made", calls.Load())
	}
	// Nobody is sent by a name that is gone.
	if counted := tally(t, l.base+"/x", 100); counted["new"] != 100 {
		t.Errorf("after the last change %v answered, want only new", counted)
	}
}
