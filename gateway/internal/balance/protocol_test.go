package balance

import (
	"testing"

	"specialroutes.example/gateway/internal/registry"
)

func TestTheLabelProtocolSaysWhatAnInstanceSpeaks(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]string{"": "http", "h2c": "h2c", "H2C": "http", "h2": "http", "http": "http", "grpc": "http"} {
		instance := registry.Instance{ID: "a1", Address: "10.0.0.1:80", Labels: map[string]string{"protocol": label}}
		e := newEstate(t, map[string][]registry.Instance{"a": {instance}})
		p := e.selection(nil, 0).Next()
		if p == nil || p.Scheme != want || p.Address != "10.0.0.1:80" {
			t.Errorf("protocol=%s: %+v, want the scheme %s", label, p, want)
		}
		p.Release()
	}
}
