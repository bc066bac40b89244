package forward

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"specialroutes.example/gateway/internal/config"
)

// Server is the data port's server. It fits service.Server.
type Server struct {
	// Observer is told of requests that are refused before they reach the handler,
	// because they are not HTTP; nil: nobody. Set it before Serve.
	Observer Observer

	// NewID makes their correlation IDs; nil: they have none. Set it before Serve.
	NewID func() string

	http *http.Server
	cut  context.CancelFunc
}

// NewServer returns a server for h. It limits heads and idle connections; all
// other limits are kept where the request is known.
func NewServer(h http.Handler, t config.Timeouts, l config.Limits, log *slog.Logger) *Server {
	requests, cut := context.WithCancel(context.Background())
	return &Server{
		cut: cut,
		http: &http.Server{
			Handler:           marked(h),
			ReadHeaderTimeout: t.Header,
			IdleTimeout:       t.KeepAlive,
			// A head between our limit and this one gets our answer; a longer one is
			// not even read.
			MaxHeaderBytes: 2 * int(l.HeaderBytes),
			// OPTIONS * is judged as every other request is.
			DisableGeneralOptionsHandler: true,
			ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
			BaseContext:                  func(net.Listener) context.Context { return requests },
			ConnContext:                  withConn,
			ConnState:                    noteState,
		},
	}
}

// Serve serves the connections of l. It returns http.ErrServerClosed after
// Shutdown or Close.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(&listener{l, s}) }

// Shutdown stops accepting and waits for the requests in flight. It does not wait
// for tunnels: they may go on until ctx ends. It returns the context's error when
// that ends before the requests.
func (s *Server) Shutdown(ctx context.Context) error {
	context.AfterFunc(ctx, s.cut)
	return s.http.Shutdown(ctx)
}

// Close ends all connections, those of tunnels too.
func (s *Server) Close() error {
	s.cut()
	return s.http.Close()
}
