package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/gateway/internal/registry/consul/consultest"
	"specialroutes.example/services/estate/consulagent/consulagenttest"
)

// lane is a record by which the header zone leads to the instances that carry it.
const lane = `{"service":"org","active":true,"labelRules":[{"header":"zone","label":"zone","mode":"symmetric"}]}`

const inLane = "zone: alice"

func TestALabelThatAnOperatorChangesSteersTheNextCalls(t *testing.T) {
	t.Parallel()
	feed, fake := recordstest.NewFeed(t), consultest.NewServer(t)
	fake.Set("org", entry(t, "1", upstream(t, "ONE")), entry(t, "2", upstream(t, "TWO")))
	feed.Put("org", lane)
	gateways := []*gateway{start(t, inConsul(feed.URL, fake.URL)).open(t), start(t, inConsul(feed.URL, fake.URL)).open(t)}
	steers := func(what, plain, alice string) {
		t.Helper()
		for _, g := range gateways {
			eventually(t, what, func() bool {
				return reached(t, g.data+"/api/org/x", "") == plain && reached(t, g.data+"/api/org/x", inLane) == alice
			})
		}
	}
	steers("before", "ONE TWO", "503")
	feed.PutLabels("org", "2", `{"zone":"alice"}`, time.Now().Add(time.Hour))
	steers("with the label", "ONE", "TWO")
	feed.DeleteLabels("org", "2")
	steers("without it again", "ONE TWO", "503")

	// A change ends by the gateways' own clock, also when nobody can tell them.
	feed.PutLabels("org", "1", `{"zone":"alice","version":null}`, time.Now().Add(5*time.Second))
	steers("for a while", "TWO", "ONE")
	feed.CloseClientConnections()
	feed.Close()
	steers("after its end", "ONE TWO", "503")
}

// Consul and specialroutes are away when the gateway starts again.
func TestARestartWithNothingAroundItServesFromTheFile(t *testing.T) {
	t.Parallel()
	agent, feed := consulagenttest.Start(t), recordstest.NewFeed(t)
	for _, id := range []string{"1", "2"} {
		registered(t, agent.Address(), id, upstream(t, "I"+id))
	}
	feed.Put("org", lane)
	feed.PutLabels("org", "2", `{"zone":"alice"}`, time.Now().Add(time.Hour))
	settings := inConsul(feed.URL, agent.Address()) + "\n"
	settings = strings.Replace(settings, "records: {", fmt.Sprintf("records: {file: %q, ", filepath.Join(t.TempDir(), "records.json")), 1)
	g := start(t, settings).open(t)
	eventually(t, "both are known", func() bool { return len(g.instances(t).Services["org"]) == 2 })
	eventually(t, "the lane is open", func() bool { return reached(t, g.data+"/api/org/x", inLane) == "I2" })
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	if err := agent.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	feed.CloseClientConnections()
	feed.Close()

	g = start(t, settings).open(t)
	if got := reached(t, g.data+"/api/org/x", ""); got != "I1" {
		t.Errorf("without a label %s answers, want I1", got)
	}
	if got := reached(t, g.data+"/api/org/x", inLane); got != "I2" {
		t.Errorf("in the lane %s answers, want I2", got)
	}
	shown := g.instances(t)
	if org := shown.Services["org"]; shown.Source != "file" || len(org) != 2 || !org[0].Unconfirmed || !org[1].Unconfirmed {
		t.Errorf("instances = %+v, want both unconfirmed and from the file", shown)
	}
	if body := bodyOf(get(t, g.admin+"/readyz")); !strings.Contains(body, `"records": "file"`) || !strings.Contains(body, `"registry": "file"`) {
		t.Errorf("readyz = %s", body)
	}
	if err := agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both are registered again", func() bool {
		now := g.instances(t)
		org := now.Services["org"]
		return now.Source == "live" && len(org) == 2 && !org[0].Unconfirmed && !org[1].Unconfirmed
	})
	if got := reached(t, g.data+"/api/org/x", inLane); got != "I2" {
		t.Errorf("in the lane %s answers, want I2", got)
	}
}
