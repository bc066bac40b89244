package service_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"specialroutes.example/services/service"
)

func TestRun_LeavesWhileItStillServesAndIsNotReadyAnyMore(t *testing.T) {
	t.Parallel()
	draining := new(service.Draining)
	var url string
	var served, ready int
	r := run(t, service.Options{
		Draining:  draining,
		Endpoints: []service.Endpoint{{Name: "data", Address: "127.0.0.1:0", Server: service.HTTPServer(draining.Wrap(service.Ready(draining, nil)))}},
		Leave: func(ctx context.Context) error {
			if _, limited := ctx.Deadline(); !limited {
				t.Error("the context has no deadline")
			}
			if res, err := http.Get(url); err == nil {
				served++
				ready = res.StatusCode
				_ = res.Body.Close()
			}
			return errors.New("the registry is away")
		},
	})
	url = "http://" + r.address(t, "data")
	r.stop()
	if err := <-r.result; err != nil {
		t.Errorf("Run = %v, want nil: leaving that failed is no failure of the process", err)
	}
	if served != 1 || ready != http.StatusServiceUnavailable {
		t.Errorf("while leaving %d requests were served with %d, want one with 503", served, ready)
	}
}

func TestRun_ForceEndsTheLeaving(t *testing.T) {
	t.Parallel()
	force := make(chan os.Signal, 1)
	leaving := make(chan struct{})
	r := run(t, service.Options{
		Endpoints: []service.Endpoint{{Name: "data", Address: "127.0.0.1:0", Server: ok()}},
		Force:     force,
		Leave: func(ctx context.Context) error {
			close(leaving)
			<-ctx.Done()
			return ctx.Err()
		},
	})
	r.address(t, "data")
	r.stop()
	<-leaving
	begin := time.Now()
	force <- syscall.SIGTERM
	if err := <-r.result; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the stop took %s after the second signal", took)
	}
}
