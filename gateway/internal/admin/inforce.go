package admin

import (
	"net/http"
	"time"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/services/problem"
)

// shownRoute is a route as /routes shows it.
type shownRoute struct {
	Host             string            `json:"host,omitempty"`
	Prefix           string            `json:"prefix"`
	Service          string            `json:"service"`
	StripPrefix      bool              `json:"stripPrefix"`
	PreserveHost     bool              `json:"preserveHost"`
	SensitiveHeaders []string          `json:"sensitiveHeaders"`
	Timeouts         map[string]string `json:"timeouts"`
}

// routes answers /routes: the table, in the order of the settings.
func (o Options) routes(w http.ResponseWriter, _ *http.Request) {
	shown := make([]shownRoute, 0, len(o.Config.Routes))
	for _, r := range o.Config.Routes {
		shown = append(shown, showRoute(r))
	}
	write(w, map[string]any{"routes": shown})
}

func showRoute(r config.Route) shownRoute {
	s := shownRoute{
		Host: r.Host, Prefix: r.Prefix, Service: r.Service, StripPrefix: r.Strips(), PreserveHost: r.PreserveHost,
		SensitiveHeaders: []string{}, Timeouts: make(map[string]string),
	}
	s.SensitiveHeaders = append(s.SensitiveHeaders, r.SensitiveHeaders...)
	for name, d := range map[string]time.Duration{
		"connect": r.Timeouts.Connect, "response": r.Timeouts.Response, "idle": r.Timeouts.Idle,
		"tunnel": r.Timeouts.Tunnel, "total": r.Timeouts.Total,
	} {
		s.Timeouts[name] = "none"
		if d > 0 {
			s.Timeouts[name] = d.String()
		}
	}
	return s
}

// shownRecords is the body of /records.
type shownRecords struct {
	Source     records.Source `json:"source"`
	AgeSeconds *float64       `json:"ageSeconds"` // null: there are none
	Cursor     string         `json:"cursor"`
	InForce    int            `json:"inForce"`
	SetAside   int            `json:"setAside"`
	URL        string         `json:"url,omitempty"`       // of the last exchange
	Errors     int64          `json:"errors"`              // exchanges that failed since the start
	LastError  string         `json:"lastError,omitempty"` // of the last of them

	LastErrorAt  *time.Time `json:"lastErrorAt,omitempty"`
	FailingSince *time.Time `json:"failingSince,omitempty"` // absent: the last exchange did not fail

	Records []records.State `json:"records"`
}

// records answers /records: what is in force, and what was set aside and why. With
// ?service= it shows one service only.
func (o Options) records(w http.ResponseWriter, req *http.Request) {
	snapshot, st := o.Records.Load(), o.Status()
	shown := shownRecords{
		Source: st.Source, Cursor: snapshot.Cursor(), InForce: snapshot.Len(), SetAside: snapshot.SetAside(),
		URL: st.URL, Errors: st.Errors, LastError: st.LastError, Records: []records.State{},
	}
	shown.LastErrorAt, shown.FailingSince = stamp(st.LastErrorAt), stamp(st.FailingSince)
	if st.Source != records.SourceNone {
		shown.AgeSeconds = o.age(st.AsOf)
	}
	only := req.FormValue("service")
	for _, state := range snapshot.States() {
		if only == "" || state.Service == only {
			shown.Records = append(shown.Records, state)
		}
	}
	if only != "" && len(shown.Records) == 0 {
		problem.Write(w, problem.Problem{Status: http.StatusNotFound, Code: "no_record", Detail: "the service has no record"})
		return
	}
	write(w, shown)
}
