package admin

import (
	"math"
	"net/http"
	"time"

	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/services/problem"
)

// readiness is the body of /readyz.
type readiness struct {
	Status     string          `json:"status"`
	Records    records.Source  `json:"records"`
	Registry   registry.Source `json:"registry"`
	AgeSeconds ages            `json:"ageSeconds"`

	// FailingSince says since when no exchange has succeeded; absent where the last did.
	FailingSince *failing `json:"failingSince,omitempty"`
}

// failing is since when exchanges fail; absent where the last one did not.
type failing struct {
	Records  *time.Time `json:"records,omitempty"`
	Registry *time.Time `json:"registry,omitempty"`
}

// ages are in seconds, since the data were last known to be right; null where
// there are none.
type ages struct {
	Records  *float64 `json:"records"`
	Registry *float64 `json:"registry"`
}

// ready answers /readyz: 503 before the data port is open and once the gateway
// drains, 200 between. Old data are no reason to be unready: a gateway that routes
// by them is better than none.
func (o Options) ready(w http.ResponseWriter, _ *http.Request) {
	if o.Draining.Started() {
		problem.Write(w, problem.Problem{Status: http.StatusServiceUnavailable, Code: "draining", Detail: "the gateway is stopping"})
		return
	}
	now := o.readiness()
	select {
	case <-o.Opened:
		write(w, now)
	default:
		problem.Write(w, problem.Problem{
			Status: http.StatusServiceUnavailable, Code: "starting", Detail: "the data port is not open yet",
			Members: map[string]any{"records": now.Records, "registry": now.Registry},
		})
	}
}

func (o Options) readiness() readiness {
	rec, reg := o.Status(), o.Registry.Status()
	r := readiness{Status: "ready", Records: rec.Source, Registry: reg.Source}
	if rec.Source != records.SourceNone {
		r.AgeSeconds.Records = o.age(rec.AsOf)
	}
	if reg.Source != registry.None {
		r.AgeSeconds.Registry = o.age(reg.Since)
	}
	if f := (failing{stamp(rec.FailingSince), stamp(reg.FailingSince)}); f != (failing{}) {
		r.FailingSince = &f
	}
	return r
}

// stamp is a moment as it is shown, nil for none.
func stamp(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return new(at.UTC())
}

// age is the time since at in seconds. A zero time is always now.
func (o Options) age(at time.Time) *float64 {
	if at.IsZero() {
		return new(0.0)
	}
	return new(math.Round(max(0, o.Now().Sub(at).Seconds())*1000) / 1000)
}
