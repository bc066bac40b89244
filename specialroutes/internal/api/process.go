package api

import (
	_ "embed"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed openapi.yaml
var openapiDocument []byte

type health struct {
	Status string `json:"status"`
}

// healthz asks nobody else: who restarts this process because the database is away
// makes matters worse.
func (a *api) healthz(c *gin.Context) error {
	return writeJSON(c, http.StatusOK, health{"ok"})
}

// readyz asks what the feed knows, and so needs no connection of the pool.
func (a *api) readyz(c *gin.Context) error {
	if a.Draining.Started() {
		return refuse(http.StatusServiceUnavailable, "stopping", "This process is stopping.").with("Retry-After", retryAfter)
	}
	if _, err := a.Feed.Head(); err != nil {
		f := refuse(http.StatusServiceUnavailable, "not_ready", "The database is away, or its schema is not in place yet.")
		f.cause = err
		return f.with("Retry-After", retryAfter)
	}
	return writeJSON(c, http.StatusOK, health{"ok"})
}

func (a *api) showMetrics(c *gin.Context) error {
	promhttp.HandlerFor(a.Metrics, promhttp.HandlerOpts{}).ServeHTTP(c.Writer, c.Request)
	return nil
}

func (a *api) openapi(c *gin.Context) error {
	h := c.Writer.Header()
	h.Set("Content-Type", "application/yaml")
	h.Set("Content-Length", strconv.Itoa(len(openapiDocument)))
	_, _ = c.Writer.Write(openapiDocument)
	return nil
}
