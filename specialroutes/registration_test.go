package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/services/estate/consulagent/consulagenttest"
)

func TestServe_RegistersInConsulAndLeavesAtItsStop(t *testing.T) {
	t.Parallel()
	agent := consulagenttest.Start(t)
	config := api.DefaultNonPooledConfig()
	config.Address = agent.Address()
	client, err := api.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	passing := func() []*api.ServiceEntry {
		entries, _, err := client.Health().Service("specialroutesservice", "", true, nil)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	p := start(t, []string{
		"DATABASE_URL=sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "x.db")),
		"CONSUL_HTTP_ADDR=" + agent.Address(), "SERVICE_ID=sr-1", "LABELS=zone=a",
	}).ready()
	for deadline := time.Now().Add(20 * time.Second); len(passing()) != 1; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("Consul does not list it; log:\n%s", p.log)
		}
	}
	if s := passing()[0].Service; s.ID != "sr-1" || s.Meta["zone"] != "a" || !strings.HasPrefix(p.url, "http://"+s.Address+":") || s.Port == 0 {
		t.Errorf("registered is %+v, it listens on %s", s, p.url)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if left := passing(); len(left) != 0 {
		t.Errorf("after its stop Consul lists %+v", left[0].Service)
	}
}
