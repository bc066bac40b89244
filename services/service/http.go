package service

import (
	"io"
	"log/slog"
	"net/http"
	"time"
)

// The limits of HTTPServer. There is none on the whole of a request or answer: it
// would end streams and long uploads that are well. Whoever knows a limit on
// those sets it where it is known.
const (
	ReadHeaderTimeout = 10 * time.Second
	IdleTimeout       = 75 * time.Second
	MaxHeaderBytes    = 64 << 10
)

// HTTPServer returns a server for h with limits on heads and idle connections.
// Its fields may be changed before it serves.
func HTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: ReadHeaderTimeout,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    MaxHeaderBytes,
	}
}

// NewLogger returns a logger of JSON lines to w, each with the service's name. Times that
// things take are seconds there, as numbers. Whoever logs waits for w; the standard error
// that Main hands in keeps nobody waiting.
func NewLogger(w io.Writer, level slog.Level, service string) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: inSeconds}
	return slog.New(slog.NewJSONHandler(w, o)).With("service", service)
}

// inSeconds writes a duration like the access log and the metrics do, to the
// microsecond: lines of all processes are searched by one unit.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Round(time.Microsecond).Seconds())
	}
	return a
}
