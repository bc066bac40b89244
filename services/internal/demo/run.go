package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"specialroutes.example/services/lane"
	"specialroutes.example/services/registration"
	"specialroutes.example/services/service"
)

// Process is one run of a demo service's binary.
type Process struct {
	Settings Settings
	Args     []string // none serves; "healthcheck" asks the process that serves
	Stderr   io.Writer
	Force    <-chan os.Signal
}

// Run does what the arguments say. Serving ends with ctx.
func (p Process) Run(ctx context.Context, api http.Handler) error {
	switch {
	case len(p.Args) == 0:
		return p.serve(ctx, api)
	case len(p.Args) == 1 && p.Args[0] == "healthcheck":
		return service.Healthcheck(ctx, p.Settings.Listen, false)
	default:
		return fmt.Errorf("unknown arguments %q; there are none, or healthcheck", p.Args)
	}
}

func (p Process) serve(ctx context.Context, api http.Handler) error {
	s := p.Settings
	log := service.NewLogger(p.Stderr, s.LogLevel, s.Name).With("instance", s.Instance)
	draining := new(service.Draining)
	mux := http.NewServeMux()
	mux.Handle("/healthz", service.Live())
	mux.Handle("/readyz", service.Ready(draining, nil))
	mux.Handle("/", observed(log, s.Instance, lane.Middleware(lane.Options{Headers: s.LaneHeaders})(api)))
	o := service.Options{
		Name: s.Name, Log: log, Draining: draining, Drain: s.Drain, Force: p.Force,
		Endpoints: []service.Endpoint{{Name: "HTTP", Address: s.Listen, Server: service.HTTPServer(draining.Wrap(mux))}},
	}
	if s.Registration.Agent != "" {
		if err := announce(&o, s.Registration); err != nil {
			return err
		}
	}
	return service.Run(ctx, o)
}

// announce has the process register once it listens, and deregister before it
// drains.
func announce(o *service.Options, what registration.Options) error {
	what.Log = o.Log
	r, err := registration.New(what)
	if err != nil {
		return err
	}
	listening := make(chan net.Addr, 1)
	o.OnListen = func(_ string, at net.Addr) { listening <- at }
	o.Background = append(o.Background, func(ctx context.Context) error {
		select {
		case at := <-listening:
			return r.Run(ctx, at)
		case <-ctx.Done():
			return nil
		}
	})
	o.Leave = r.Leave
	return nil
}

// observed names the instance on each answer and writes a line for each request.
func observed(log *slog.Logger, instance string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Served-By", instance)
		begin := time.Now()
		a := &answer{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(a, req)
		level := slog.LevelInfo
		attrs := []slog.Attr{
			slog.String("method", req.Method), slog.String("path", req.URL.EscapedPath()),
			slog.Int("status", a.status), slog.String("duration", time.Since(begin).String()),
			slog.String("correlationId", req.Header.Get(lane.CorrelationID)),
		}
		if a.cause != nil {
			level = slog.LevelError
			attrs = append(attrs, slog.String("error", a.cause.Error()))
		}
		log.LogAttrs(req.Context(), level, "request", attrs...)
	})
}

// answer remembers what the log tells of an answer.
type answer struct {
	http.ResponseWriter
	status int
	cause  error // what the client is not told
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
