package demo_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"go.uber.org/goleak"

	"specialroutes.example/services/estate/consulagent/consulagenttest"
	"specialroutes.example/services/internal/demo"
	"specialroutes.example/services/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAProcessRegistersWhenConsulIsConfigured(t *testing.T) {
	t.Parallel()
	agent := consulagenttest.Start(t)
	config := api.DefaultNonPooledConfig()
	config.Address = agent.Address()
	client, err := api.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := demo.Load(demo.Environment{
		"CONSUL_HTTP_ADDR=" + agent.Address(), "SERVICE_NAME=a", "SERVICE_ID=a-7", "LABELS=version=1.0.0,zone=a", "LISTEN=127.0.0.1:0",
	}, demo.Settings{Name: "x", Instance: "x-1", Drain: service.DrainTimes{Delay: time.Second, Limit: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- demo.Process{Settings: settings, Stderr: io.Discard}.Run(ctx, http.NotFoundHandler())
	}()
	passing := func() []*api.ServiceEntry {
		entries, _, err := client.Health().Service("a", "", true, nil)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	await(t, func() bool { return len(passing()) == 1 })
	if got := passing()[0].Service; got.ID != "a-7" || got.Meta["version"] != "1.0.0" || got.Meta["zone"] != "a" || got.Port == 0 {
		t.Errorf("registered %+v", got)
	}
	stop()
	await(t, func() bool { return len(passing()) == 0 })
	select {
	case err := <-ended:
		t.Errorf("the process has ended (%v) before its drain delay, which follows the deregistering", err)
	default:
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func await(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}
