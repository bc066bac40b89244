package main

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/services/estate/consulagent/consulagenttest"
)

func TestTheGatewayIsAnnouncedWhenItsDataPortIsOpenAndLeavesAtItsStop(t *testing.T) {
	t.Parallel()
	agent, feed := consulagenttest.Start(t), recordstest.NewFeed(t)
	config := api.DefaultNonPooledConfig()
	config.Address = agent.Address()
	client, err := api.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	listed := func() []*api.ServiceEntry {
		entries, _, err := client.Health().Service("gatewayservice", "", true, nil)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	g := start(t, fmt.Sprintf(`
routes: [{prefix: /api/org, service: org}]
records: {url: %q}
registration: {agent: %q, labels: [zone=a]}
drain: {delay: 0s, limit: 5s}
`, feed.URL, agent.Address())).open(t)
	eventually(t, "the agent finds it ready", func() bool { return len(listed()) == 1 })
	data, err := url.Parse(g.data)
	if err != nil {
		t.Fatal(err)
	}
	if s := listed()[0].Service; s.ID != "gatewayservice-gw-1" || s.Meta["zone"] != "a" || s.Address != "127.0.0.1" || fmt.Sprint(s.Port) != data.Port() {
		t.Errorf("registered is %+v, want the data port of %s", s, g.data)
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	if left := listed(); len(left) != 0 {
		t.Errorf("after its stop Consul lists %+v", left[0].Service)
	}
}
