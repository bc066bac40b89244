package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/gateway/internal/registry/consul/consultest"
	"specialroutes.example/services/estate/consulagent/consulagenttest"
)

// labelled are the services of the three systems that choose instances by labels:
// the tags of their instances by ID, which is what an instance answers with.
var labelled = map[string]map[string][]string{
	"versions": {"one": {"version=1.0.0"}, "two": {"version=2.0.0"}, "plain": nil},
	"grey":     {"beta-one": {"app=clientA", "version=beta-one", "zone=a"}, "beta-two": {"app=clientA", "version=beta-two", "zone=b"}},
	"lanes":    {"shared": nil, "alice": {"zone=alice"}},
	"others":   {"first": {"stage=1"}, "second": {"stage=2"}},
}

// labelRecords are their records. The service "others" has none: the record "*"
// speaks for it.
var labelRecords = map[string]string{
	"versions": `{"service":"versions","active":true,"labelRules":[{"header":"version","label":"version","mode":"lenient"}]}`,
	"grey": `{"service":"grey","active":true,"labelRules":[{"header":"app","label":"app","mode":"exact"},` +
		`{"header":"version","label":"version","mode":"exact"}]}`,
	"lanes": `{"service":"lanes","active":true,"labelRules":[{"header":"zone","label":"zone","mode":"symmetric","guard":["127.0.0.0/8"]}]}`,
	"*":     `{"service":"*","active":true,"labelRules":[{"header":"stage","label":"stage","mode":"exact"}]}`,
}

// labelCalls are calls, and the instances that they may come to.
var labelCalls = []struct{ service, header, want string }{
	{"versions", "", "one plain two"},
	{"versions", "version: 1.0.0", "one plain"},
	{"versions", "version: 2.0.0", "plain two"},
	{"versions", "version: 3.0.0", "plain"},
	{"grey", "app: clientA, version: beta-one", "beta-one"},
	{"grey", "app: clientA, version: beta-two", "beta-two"},
	{"grey", "app: clientB, version: beta-two", "503"},
	{"grey", "version: beta-two", "503"},
	{"grey", "", "503"},
	{"lanes", "", "shared"},
	{"lanes", "zone: alice", "alice"},
	{"lanes", "zone: bob", "503"},
	{"others", "stage: 2, version: 1.0.0", "second"},
	{"others", "", "503"},
}

func TestLabelsOfInstancesInConsul(t *testing.T) {
	t.Parallel()
	fake := consultest.NewServer(t)
	for service, instances := range labelled {
		var entries []*api.ServiceEntry
		for id, tags := range instances {
			at := named(t, id)
			entries = append(entries, consultest.Entry(id, at.IP.String(), at.Port, consultest.Labels(nil, tags...)))
		}
		fake.Set(service, entries...)
	}
	checkLabels(t, fake.URL)
}

func TestLabelsOfInstancesInARealAgent(t *testing.T) {
	t.Parallel()
	agent := consulagenttest.Start(t)
	config := api.DefaultNonPooledConfig()
	config.Address = agent.Address()
	c, err := api.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	for service, instances := range labelled {
		for id, tags := range instances {
			at := named(t, id)
			r := &api.AgentServiceRegistration{ID: id, Name: service, Address: at.IP.String(), Port: at.Port, Tags: tags}
			if err := c.Agent().ServiceRegister(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkLabels(t, agent.Address())
}

// named starts an upstream that answers with its ID.
func named(t *testing.T, id string) *net.TCPAddr {
	t.Helper()
	return upstream(t, id).Listener.Addr().(*net.TCPAddr)
}

// checkLabels makes the calls through a gateway whose instances are in that Consul.
func checkLabels(t *testing.T, consul string) {
	t.Helper()
	feed := recordstest.NewFeed(t)
	routes := ""
	for service := range labelled {
		routes += fmt.Sprintf("- {prefix: /%s, service: %s}\n", service, service)
	}
	for service, record := range labelRecords {
		feed.Put(service, record)
	}
	g := start(t, fmt.Sprintf("routes:\n%sregistry: {consul: {address: %q}}\nrecords: {url: %q}\ndrain: {delay: 0s, limit: 5s}\n",
		routes, consul, feed.URL)).open(t)
	eventually(t, "all instances are known", func() bool {
		services := g.instances(t).Services
		for service, instances := range labelled {
			if len(services[service]) != len(instances) {
				return false
			}
		}
		return true
	})
	for _, call := range labelCalls {
		if got := reached(t, g.data+"/"+call.service, call.header); got != call.want {
			t.Errorf("%s with %q reached %q, want %q", call.service, call.header, got, call.want)
		}
	}
}

// reached makes some calls with the same headers and returns the instances that
// answered, sorted, or the status of a refusal.
func reached(t *testing.T, url, header string) string {
	t.Helper()
	var all []string
	for range 6 {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for field := range strings.SplitSeq(header, ", ") {
			if name, value, ok := strings.Cut(field, ": "); ok {
				req.Header.Set(name, value)
			}
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(string(body), " ") // the path is behind it
		if res.StatusCode != http.StatusOK {
			name = res.Status[:3]
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}
