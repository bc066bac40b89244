package forward

import (
	"log/slog"
	"net/http"

	"specialroutes.example/gateway/internal/config"
)

// NewServer returns the server of the data port for h. It limits heads and idle
// connections; all other limits are kept where the request is known.
func NewServer(h http.Handler, t config.Timeouts, l config.Limits, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: t.Header,
		IdleTimeout:       t.KeepAlive,
		// A head between our limit and this one gets our answer; a longer one gets
		// net/http's, and is not read.
		MaxHeaderBytes: 2 * int(l.HeaderBytes),
		// OPTIONS * is judged as every other request is.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
