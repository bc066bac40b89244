package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"specialroutes.example/services/lane"
	"specialroutes.example/services/registration"
	"specialroutes.example/services/service"
)

// Process is one run of a demo service's binary.
type Process struct {
	Settings Settings
	Args     []string  // none serves; "healthcheck" asks the process that serves; --help lists the variables
	Stdout   io.Writer // of --help
	Stderr   io.Writer
	Force    <-chan os.Signal

	// Variables are those that the service has beside the ones of every demo service.
	Variables []Variable
}

// Run does what the arguments say. Serving ends with ctx.
func (p Process) Run(ctx context.Context, api http.Handler) error {
	switch {
	case len(p.Args) == 0:
		return p.serve(ctx, api)
	case len(p.Args) == 1 && p.Args[0] == "healthcheck":
		return service.Healthcheck(ctx, p.Settings.Listen, false)
	case len(p.Args) == 1 && slices.Contains([]string{"-h", "-help", "--help", "help"}, p.Args[0]):
		p.help()
		return nil
	default:
		return fmt.Errorf("unknown arguments %q; there are none, or healthcheck, or --help", p.Args)
	}
}

// endpoint is the name of the only port.
const endpoint = "HTTP"

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
		Endpoints: []service.Endpoint{{Name: endpoint, Address: s.Listen, Server: service.HTTPServer(draining.Wrap(mux))}},
	}
	if err := registration.Announce(&o, s.Registration, endpoint, endpoint); err != nil {
		return err
	}
	return service.Run(ctx, o)
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
			slog.Int("status", a.status), slog.Duration("duration", time.Since(begin)),
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
