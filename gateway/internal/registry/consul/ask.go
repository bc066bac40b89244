package consul

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/services/clientauth"
)

// answer is a good one.
type answer struct {
	instances []registry.Instance
	index     uint64
}

// connect makes the client. It opens no connection yet.
func (r *Registry) connect() error {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: r.o.Times.Connect, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   r.o.Times.Connect,
		ResponseHeaderTimeout: r.o.Times.Wait + r.o.Times.Wait/16 + r.o.Times.Answer,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
	}
	if r.o.CAFile != "" {
		pool, err := clientauth.Authorities(r.o.CAFile)
		if err != nil {
			return fmt.Errorf("consul: the CA file: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	r.close = transport.CloseIdleConnections
	var err error
	r.client, err = api.NewClient(&api.Config{
		Address:    r.o.Address,
		HttpClient: &http.Client{Transport: bounded{transport, r.o.MaxAnswer, r.o.Times.Answer}},
	})
	if err != nil {
		return fmt.Errorf("consul: %w", err)
	}
	return nil
}

// ask sends one question and waits for its answer: at once for index 0, else until
// something has changed since that index, or Times.Wait is over.
func (r *Registry) ask(ctx context.Context, service string, index uint64) (answer, error) {
	t := r.o.Times
	ctx, cancel := context.WithTimeout(ctx, t.Wait+t.Wait/16+2*t.Answer)
	defer cancel()
	token, err := r.token()
	if err != nil {
		return answer{}, err
	}
	q := &api.QueryOptions{
		Datacenter: r.o.Datacenter, Token: token, AllowStale: r.o.Stale,
		WaitIndex: index, WaitTime: t.Wait,
	}
	entries, meta, err := r.client.Health().Service(service, "", true, q.WithContext(ctx))
	if err == nil && r.o.Stale && (!meta.KnownLeader || meta.LastContact > r.o.MaxStale) {
		// Asked without an index: what the server has missed is wanted now.
		q.AllowStale, q.WaitIndex = false, 0
		entries, meta, err = r.client.Health().Service(service, "", true, q.WithContext(ctx))
	}
	if err != nil {
		return answer{}, err
	}
	if len(entries) == 0 && meta.ResultsFilteredByACLs {
		return answer{}, errDenied
	}
	return answer{instances: instancesOf(service, entries, r.o.RequireServiceCheck), index: meta.LastIndex}, nil
}

// token reads the token file, "" when there is none.
func (r *Registry) token() (string, error) {
	if r.o.TokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(r.o.TokenFile)
	if err != nil {
		return "", fmt.Errorf("the token file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// ErrTooLong says that an answer was longer than Options.MaxAnswer.
var ErrTooLong = errors.New("consul: the answer is too long")

// bounded bounds answers: in bytes, and in the time from the head to the end.
type bounded struct {
	next  http.RoundTripper
	bytes int64
	time  time.Duration
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	res, err := b.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	res.Body = &body{ReadCloser: res.Body, left: b.bytes, late: time.AfterFunc(b.time, cancel), cancel: cancel}
	return res, nil
}

// body is one that ends with an error when it is too long.
type body struct {
	io.ReadCloser
	left   int64
	late   *time.Timer
	cancel context.CancelFunc
}

func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	b.left -= int64(n)
	if b.left < 0 {
		return 0, ErrTooLong
	}
	return n, err
}

// Close gives the rest up where the answer was not read to its end: api's client
// would read it first, to use the connection again.
func (b *body) Close() error {
	b.late.Stop()
	b.cancel()
	return b.ReadCloser.Close()
}
