package service

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"specialroutes.example/services/problem"
)

// healthcheckTimeout is what a health check may take; /healthz asks nobody else.
const healthcheckTimeout = 5 * time.Second

// Live answers /healthz: the process runs. It asks nobody else, so that an
// orchestrator does not restart a process for the faults of another one.
func Live() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeOK(w) })
}

// Ready answers /readyz: 503 once d drains or while check fails, 200 otherwise.
// The error of check is shown to whoever asks, so it holds no secret. A nil check
// never fails.
func Ready(d *Draining, check func(context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if d.Started() {
			problem.Write(w, problem.Problem{
				Status: http.StatusServiceUnavailable, Code: "draining", Detail: "the process is stopping",
			})
			return
		}
		if check != nil {
			if err := check(req.Context()); err != nil {
				problem.Write(w, problem.Problem{
					Status: http.StatusServiceUnavailable, Code: "not_ready", Detail: err.Error(),
				})
				return
			}
		}
		writeOK(w)
	})
}

func writeOK(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, `{"status":"ok"}`+"\n")
}

// Healthcheck asks the process that listens on the given address, usually another
// one of the same binary, for /healthz. A container without a shell or curl runs
// the binary itself as its health check. An address without a host, or with an
// unspecified one, is asked on the loopback. With useTLS the certificate is not
// verified: it is our own, and seldom names the loopback.
func Healthcheck(ctx context.Context, listen string, useTLS bool) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1" // Go listens on both families there
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	scheme := "http"
	if useTLS {
		scheme = "https"
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	url := scheme + "://" + net.JoinHostPort(host, port) + "/healthz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("health check: %s answers %s", url, res.Status)
	}
	return nil
}
