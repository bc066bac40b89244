package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"specialroutes.example/specialroutes/internal/tokens"
)

// maxLogged is how much of a path stands in a log line, in bytes.
const maxLogged = 1024

// edge is the outermost handler: it turns the error of those inside into an answer,
// a panic into an error, and writes one log line and one set of metrics. Nothing
// that a client sent is logged but method, path and correlation ID.
func (a *api) edge(c *gin.Context) {
	start := time.Now()
	id := correlate(c)
	c.Header("X-Content-Type-Options", "nosniff")
	a.limitBody(c)
	err := a.runInside(c)
	var f *failure
	if err != nil {
		f = failureOf(err)
		if errors.Is(err, context.Canceled) && c.Request.Context().Err() != nil {
			f = refuse(statusClientGone, "client_gone", "The client did not wait.")
		}
		if c.Writer.Written() { // half an answer must not look like a whole one
			defer panic(http.ErrAbortHandler)
		} else {
			f.answer(c, id)
		}
	}
	a.report(c, id, f, time.Since(start))
}

// runInside runs the handlers inside and returns the error of the one that failed.
func (a *api) runInside(c *gin.Context) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	c.Next()
	if last := c.Errors.Last(); last != nil {
		return last.Err
	}
	return nil
}

// report writes the log line and the metrics of a request.
func (a *api) report(c *gin.Context, id string, f *failure, took time.Duration) {
	status, level := c.Writer.Status(), slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("correlationId", id),
		slog.String("method", capped(c.Request.Method)),
		slog.String("path", capped(c.Request.URL.EscapedPath())),
		slog.String("client", clientAddress(c.Request)),
		slog.Int("bytes", max(0, c.Writer.Size())),
		slog.Duration("duration", took),
	}
	if t, ok := c.Get(tokenKey); ok {
		attrs = append(attrs, slog.String("token", t.(tokens.Token).Name))
	}
	if c.GetBool(quietKey) {
		level = slog.LevelDebug
	}
	if f != nil {
		status, level = f.problem.Status, slog.LevelInfo
		attrs = append(attrs, slog.String("code", f.problem.Code))
		if status >= http.StatusInternalServerError {
			level = slog.LevelError
			attrs = append(attrs, slog.String("error", f.Error()))
		}
	}
	attrs = append(attrs, slog.Int("status", status))
	a.Log.LogAttrs(context.WithoutCancel(c.Request.Context()), level, "request", attrs...)
	a.metrics.observe(c.FullPath(), c.Request.Method, status, took)
}

func capped(s string) string {
	if len(s) > maxLogged {
		return s[:maxLogged] + "…"
	}
	return s
}

// peerAddress is clientAddress as an address; the zero one when it is none.
func peerAddress(r *http.Request) netip.Addr {
	a, _ := netip.ParseAddr(clientAddress(r))
	return a
}

// clientAddress is the peer's, without port. Headers that claim another one are not
// read: this port has no proxy that we trust.
func clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
