package forwardtest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/services/routing"
)

func (s *suite) testLabels(t *testing.T) {
	t.Run("version control", s.testVersionControl)
	t.Run("grey release", s.testGreyRelease)
	t.Run("lanes", s.testLanes)
	t.Run("a rule's fallback shows", s.testLabelFallback)
	t.Run("no instance of that version", s.testNoVersion)
	t.Run("a rule's header is removed after it was read", s.testSensitiveLabel)
	t.Run("another service's labels", s.testOtherServicesLabels)
	t.Run("a busy zone", s.testBusyZone)
}

// instance is an upstream that answers with its own name, and its labels.
type instance struct {
	name   string
	labels map[string]string
	handle http.HandlerFunc // nil answers with the name
}

// labelled starts a gateway with such instances of service and a record with such
// rules.
func (s *suite) labelled(t *testing.T, instances []instance, rules []routing.LabelRule, change func(*config.Config)) *gateway {
	t.Helper()
	var configured []config.Instance
	for _, i := range instances {
		if i.handle == nil {
			i.handle = ok(i.name)
		}
		configured = append(configured, config.Instance{ID: i.name, Address: newUpstream(t, i.handle).address(), Labels: i.labels})
	}
	return s.gateway(t, setup{
		records: []*routing.Record{{Service: service, Active: new(true), LabelRules: rules}},
		config: func(c *config.Config) {
			c.Instances = map[string][]config.Instance{service: configured}
			if change != nil {
				change(c)
			}
		},
	})
}

// reaches sends some requests and returns the instances that answered, sorted; a
// problem answers with its code.
func (g *gateway) reaches(t *testing.T, fields ...string) string {
	t.Helper()
	var names []string
	for range 8 {
		a := g.get(t, "/x", fields...)
		if a.StatusCode != http.StatusOK {
			code, _ := a.problem(t)["code"].(string)
			names = append(names, code)
			continue
		}
		names = append(names, a.body)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

type labels = map[string]string

// reach is what requests with some fields must come to.
type reach struct {
	fields []string
	want   string
}

func (g *gateway) check(t *testing.T, all []reach) {
	t.Helper()
	for _, r := range all {
		if got := g.reaches(t, r.fields...); got != r.want {
			t.Errorf("%q reached %q, want %q", r.fields, got, r.want)
		}
	}
}

func (s *suite) testVersionControl(t *testing.T) {
	g := s.labelled(t,
		[]instance{{name: "one", labels: labels{"version": "1.0.0"}}, {name: "two", labels: labels{"version": "2.0.0"}}, {name: "plain"}},
		[]routing.LabelRule{{Header: "version", Label: "version", Mode: "lenient"}}, nil)
	g.check(t, []reach{
		{nil, "one plain two"},
		{[]string{"version: "}, "one plain two"},
		{[]string{"version: 1.0.0"}, "one plain"},
		{[]string{"VERSION:  2.0.0 "}, "plain two"},
		{[]string{"version: 3.0.0"}, "plain"},
		{[]string{"version: 1.0.0", "version: 2.0.0"}, "bad_header"},
		{[]string{"version: " + strings.Repeat("1", 256)}, "bad_header"},
		{[]string{"version: 1.0.0\xff"}, "bad_header"},
	})
}

func (s *suite) testGreyRelease(t *testing.T) {
	g := s.labelled(t,
		[]instance{
			{name: "one", labels: labels{"app": "clientA", "version": "beta-one", "zone": "a"}},
			{name: "two", labels: labels{"app": "clientA", "version": "beta-two", "zone": "b"}},
			{name: "plain"},
		},
		[]routing.LabelRule{{Header: "app", Label: "app", Mode: "exact"}, {Header: "version", Label: "version", Mode: "exact"}},
		func(c *config.Config) { c.ZoneLabel = "zone" })
	g.check(t, []reach{
		{[]string{"app: clientA", "version: beta-one"}, "one"},
		{[]string{"app: clientA", "version: beta-two"}, "two"},
		{[]string{"app: clienta", "version: beta-two"}, "no_instance"},
		{[]string{"app: clientA"}, "no_instance"},
		{nil, "no_instance"},
	})
}

// The upstreams are at 127.0.0.1: outside of the one network, inside of the other.
func (s *suite) testLanes(t *testing.T) {
	instances := []instance{{name: "shared"}, {name: "laptop", labels: labels{"zone": "alice"}}}
	rule := routing.LabelRule{Header: "zone", Label: "zone", Mode: "symmetric"}
	for _, tt := range []struct {
		guard  []string
		shared string
	}{
		{nil, "shared"}, {[]string{"127.0.0.0/8"}, "shared"}, {[]string{"10.0.0.0/16"}, "no_instance"},
	} {
		rule.Guard = tt.guard
		g := s.labelled(t, instances, []routing.LabelRule{rule}, nil)
		g.check(t, []reach{
			{nil, tt.shared}, {[]string{"zone: "}, tt.shared}, {[]string{"zone: alice"}, "laptop"}, {[]string{"zone: bob"}, "no_instance"},
		})
	}
}

func (s *suite) testLabelFallback(t *testing.T) {
	rule := routing.LabelRule{Header: "version", Label: "version", Mode: "exact", Fallback: new("unlabelled")}
	g := s.labelled(t, []instance{{name: "one", labels: labels{"version": "1"}}, {name: "plain"}}, []routing.LabelRule{rule}, nil)
	for version, want := range map[string][2]string{"1": {"one", ""}, "2": {"plain", "wanted=default; reason=labels"}} {
		a := g.get(t, "/x", "version: "+version)
		a.is(t, 200, want[0])
		if got := a.Header.Get("X-Route-Fallback"); got != want[1] {
			t.Errorf("version %s: X-Route-Fallback = %q, want %q", version, got, want[1])
		}
	}
}

func (s *suite) testNoVersion(t *testing.T) {
	rules := []routing.LabelRule{{Header: "app", Label: "app", Mode: "lenient"}, {Header: "version", Label: "version", Mode: "exact"}}
	g := s.labelled(t, []instance{{name: "one", labels: labels{"version": "1"}}, {name: "two", labels: labels{"app": "x"}}}, rules, nil)
	a := g.get(t, "/x", "app: y", "version: 2")
	a.refused(t, 503, "no_instance")
	p := a.problem(t)
	asked, _ := p["labels"].(map[string]any)
	if p["service"] != service || asked["app"] != "y" || asked["version"] != "2" {
		t.Errorf("the problem names service %v and labels %v", p["service"], asked)
	}
	left := make(map[string]any)
	steps, _ := p["steps"].([]any)
	for _, step := range steps {
		m := step.(map[string]any)
		left[m["step"].(string)] = m["left"]
	}
	for step, want := range map[string]float64{"instances": 2, "selector": 2, "label app": 1, "label version": 0, "availability": 0} {
		if left[step] != want {
			t.Errorf("%s leaves %v, want %v", step, left[step], want)
		}
	}
}

// The instance that is tried second is chosen by the header too.
func (s *suite) testSensitiveLabel(t *testing.T) {
	g := s.gateway(t, setup{
		records: []*routing.Record{{Service: service, Active: new(true), LabelRules: []routing.LabelRule{
			{Header: "version", Label: "version", Mode: "exact"},
		}}},
		config: func(c *config.Config) {
			c.SensitiveHeaders = []string{"Version"}
			seen := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write([]byte("two" + r.Header.Get("Version")))
			})
			c.Instances = map[string][]config.Instance{service: {
				{ID: "a", Address: closedPort(t), Labels: labels{"version": "2"}},
				{ID: "b", Address: newUpstream(t, ok("one")).address(), Labels: labels{"version": "1"}},
				{ID: "c", Address: seen.address(), Labels: labels{"version": "2"}},
			}}
		},
	})
	if got := g.reaches(t, "version: 2"); got != "two" {
		t.Errorf("reached %q, want two without the header", got)
	}
}

// An edge that removes its clients' labels removes those that other services' rules
// read, too: the call goes on to them. Another spelling or a trailer is no way around.
func (s *suite) testOtherServicesLabels(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, r.Header["X-Lane"], r.Header["X_lane"], r.Trailer)
	})
	for whose, want := range map[config.ClientLabels]string{
		config.ClientLabelsNone: "[] [] map[X-T:[v]]",
		config.ClientLabelsAll:  "[alice] [bob] map[Version:[1] X-Lane:[carol] X-T:[v]]",
	} {
		g := s.gateway(t, setup{
			instances: []string{up.address()},
			records: []*routing.Record{{Service: "further-on", Active: new(true), LabelRules: []routing.LabelRule{
				{Header: "x-lane", Label: "lane", Mode: "symmetric"},
			}}},
			config: func(c *config.Config) { c.ClientLabels = whose },
		})
		a := g.request(t, head("POST", "/x", "x-lane: alice", "x_lane: bob", "Trailer: x-lane, version, x-t", "Transfer-Encoding: chunked")+
			"0\r\nx-lane: carol\r\nversion: 1\r\nx-t: v\r\n\r\n")
		if a.body != want {
			t.Errorf("clientLabels %s: the upstream saw %q, want %q", whose, a.body, want)
		}
	}
}

// While a request waits in one zone, the next ones go to the other.
func (s *suite) testBusyZone(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	wait := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			arrived <- struct{}{}
			<-release
		}
		_, _ = w.Write([]byte(r.Host))
	}
	g := s.labelled(t,
		[]instance{{name: "one", labels: labels{"az": "x"}, handle: wait}, {name: "two", labels: labels{"az": "y"}}},
		nil, func(c *config.Config) { c.ZoneLabel = "az" })
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.get(t, "/wait")
	}()
	select {
	case <-arrived:
	case <-done:
		t.Fatal("the first request does not wait")
	}
	if got := g.reaches(t); got != "two" {
		t.Errorf("reached %q, want two: the other zone is busy", got)
	}
	close(release)
	<-done
}
