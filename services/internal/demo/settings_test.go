package demo_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/internal/demo"
	"specialroutes.example/services/service"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	defaults := demo.Settings{Name: "x", Listen: "127.0.0.1:1", Instance: "x-1", Drain: service.DefaultDrain()}
	got, err := demo.Load(demo.Environment{"HOME=/", "INSTANCE="}, defaults)
	if err != nil || got.Listen != defaults.Listen || got.Instance != "x-1" || got.Drain != defaults.Drain || !slices.Equal(got.LaneHeaders, []string{"version", "app", "zone"}) {
		t.Errorf("Load without variables = %+v, %v, want the defaults", got, err)
	}
	got, err = demo.Load(demo.Environment{
		"LISTEN=:1", "LISTEN=:8085", "INSTANCE=a", "LANE_HEADERS=lane, version,", "DRAIN_DELAY=0s", "DRAIN_LIMIT=2m", "LOG_LEVEL=warn",
	}, defaults)
	if err != nil {
		t.Fatal(err)
	}
	if got.Listen != ":8085" || got.Instance != "a" || !slices.Equal(got.LaneHeaders, []string{"lane", "version"}) ||
		got.Drain != (service.DrainTimes{Limit: 2 * time.Minute}) || got.LogLevel != slog.LevelWarn {
		t.Errorf("Load = %+v", got)
	}
	if r := got.Registration; r.Agent != "" || r.Service != "x" || r.ID != "a" {
		t.Errorf("Registration = %+v, want none, but for the name and the instance", r)
	}
	for _, line := range []string{"LABELS=version", "LISTEN=8085", "DRAIN_DELAY=5", "DRAIN_LIMIT=-1s", "LOG_LEVEL=loud"} {
		name, _, _ := strings.Cut(line, "=")
		if _, err := demo.Load(demo.Environment{line}, defaults); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("Load of %s = %v, want an error that begins with the variable", line, err)
		}
	}
}

func TestHelpNamesEveryVariable(t *testing.T) {
	t.Parallel()
	settings, err := demo.Load(nil, demo.Settings{Name: "x", Listen: "127.0.0.1:1", Instance: "x-1", Drain: service.DefaultDrain()})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = demo.Process{
		Settings: settings, Args: []string{"--help"}, Stdout: &out,
		Variables: []demo.Variable{{Name: "PREFIX", Default: "OLD::", Means: "stands before names"}},
	}.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"PREFIX", "OLD::", "LISTEN", "127.0.0.1:1", "INSTANCE", "LANE_HEADERS", "version,app,zone", "DRAIN_DELAY", "DRAIN_LIMIT",
		"LOG_LEVEL", "CONSUL_HTTP_ADDR", "SERVICE_NAME", "SERVICE_ID", "SERVICE_ADDRESS", "LABELS", "healthcheck",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("--help lacks %s:\n%s", want, out.String())
		}
	}
}
