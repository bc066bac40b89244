// Package registration announces a process to Consul: it registers with its labels
// and a health check, comes back by itself when the agent has forgotten it, and
// deregisters when the process is about to stop. Programs that do not register do
// not import it, and pay nothing.
package registration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
)

// Options say what is announced, and to whom. Agent, Service and ID are required.
type Options struct {
	// Agent is the address of a Consul agent: host:port, http://host:port or
	// https://host:port. What it leaves open is read as Consul's own clients read
	// it: CONSUL_HTTP_TOKEN, CONSUL_CACERT and the like.
	Agent string

	Service string            // the name that others ask for
	ID      string            // unique on the agent
	Labels  map[string]string // what instances are chosen by
	Address string            // the host that others reach the process at; "" is that of the agent's node

	// Check is the path that the agent asks, "/readyz" if "". It must answer 200
	// without authentication.
	Check string

	// CheckTLS has the agent ask by HTTPS. It does not verify the certificate, which
	// is our own and seldom names the address that the agent asks.
	CheckTLS bool

	// Passing has the instance count as healthy from the start, not only after the
	// first check. It is for a process that is ready when it listens.
	Passing bool

	Times Times        // see DefaultTimes for the values of those at zero
	Log   *slog.Logger // nil discards
}

// Times are the waits of a Registration.
type Times struct {
	Interval      time.Duration // between two checks of the agent
	CheckLimit    time.Duration // of one check
	ForgetAfter   time.Duration // an instance that fails for so long is removed; Consul knows no less than 1 min
	Watch         time.Duration // between two looks whether the agent still knows us; jittered
	Least         time.Duration // the first delay after an error; it doubles up to Watch
	QuestionLimit time.Duration // of one question to the agent
}

// DefaultTimes returns the waits that fit most estates.
func DefaultTimes() Times {
	return Times{
		Interval: 2 * time.Second, CheckLimit: time.Second, ForgetAfter: time.Minute,
		Watch: 3 * time.Second, Least: 250 * time.Millisecond, QuestionLimit: 2 * time.Second,
	}
}

func (t Times) or(d Times) Times {
	for _, f := range []struct{ to, from *time.Duration }{
		{&t.Interval, &d.Interval}, {&t.CheckLimit, &d.CheckLimit}, {&t.ForgetAfter, &d.ForgetAfter},
		{&t.Watch, &d.Watch}, {&t.Least, &d.Least}, {&t.QuestionLimit, &d.QuestionLimit},
	} {
		if *f.to == 0 {
			*f.to = *f.from
		}
	}
	return t
}

// Registration is a process's entry in Consul. Run and Leave may be called
// concurrently, each once.
type Registration struct {
	o         Options
	client    *api.Client
	transport *http.Transport

	leaving chan struct{} // closed by Leave: nothing is registered from then on
	running sync.WaitGroup
	mu      sync.Mutex
	left    bool
}

// New returns a registration that Run makes. The error is that of options that
// cannot be used.
func New(o Options) (*Registration, error) {
	if o.Service == "" || o.ID == "" {
		return nil, errors.New("registration: a service name and an ID are required")
	}
	if o.Check == "" {
		o.Check = "/readyz"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Times = o.Times.or(DefaultTimes())
	r := &Registration{o: o, leaving: make(chan struct{})}
	r.transport = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: o.Times.QuestionLimit}).DialContext,
		TLSHandshakeTimeout: o.Times.QuestionLimit,
		IdleConnTimeout:     time.Minute,
	}
	var err error
	if r.client, err = api.NewClient(&api.Config{Address: o.Agent, Transport: r.transport}); err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	return r, nil
}

// Run registers the process as one that listens on the given address, and again
// whenever the agent does not know it any more, until ctx ends or Leave is called.
// checked is where it answers the check, often the same address. It returns nil; an
// agent that is away costs the process nothing but its announcement.
func (r *Registration) Run(ctx context.Context, listening, checked net.Addr) error {
	entry, err := r.entry(listening, checked)
	if err != nil {
		return err
	}
	if !r.begin() {
		return nil
	}
	defer r.running.Done()
	defer r.transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.running.Go(func() {
		select {
		case <-r.leaving:
			cancel()
		case <-ctx.Done():
		}
	})
	registered := false
	for failures := 0; ; {
		if err := r.see(ctx, entry, registered); ctx.Err() != nil {
			return nil
		} else if err != nil {
			failures++
			r.warn(err, failures)
		} else {
			failures, registered = 0, true
		}
		if !sleep(ctx, r.delay(failures)) {
			return nil
		}
	}
}

// begin counts a Run that may go on.
func (r *Registration) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.left {
		r.running.Add(1)
	}
	return !r.left
}

// see registers the process unless it has done so before and the agent knows it.
// What the agent knows at first may be of an earlier process, with another port or
// other labels.
func (r *Registration) see(ctx context.Context, entry *api.AgentServiceRegistration, registered bool) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Times.QuestionLimit)
	defer cancel()
	if registered {
		_, _, err := r.client.Agent().Service(r.o.ID, new(api.QueryOptions).WithContext(ctx))
		if err == nil || !unknown(err) {
			return err
		}
	}
	options := api.ServiceRegisterOpts{ReplaceExistingChecks: true}.WithContext(ctx)
	if err := r.client.Agent().ServiceRegisterOpts(entry, options); err != nil {
		return err
	}
	r.o.Log.Info("registered", "as", r.o.Service, "id", r.o.ID, "agent", r.o.Agent)
	return nil
}

// unknown reports whether the agent says that it has no such instance.
func unknown(err error) bool {
	var status api.StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// Leave deregisters the process, for good. An agent that does not know it is as
// good. Call it before the process drains, so that callers learn of it while it
// still serves.
func (r *Registration) Leave(ctx context.Context) error {
	r.mu.Lock()
	if !r.left {
		r.left = true
		close(r.leaving)
	}
	r.mu.Unlock()
	r.running.Wait() // a registering under way must not come after the deregistering
	defer r.transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, r.o.Times.QuestionLimit)
	defer cancel()
	err := r.client.Agent().ServiceDeregisterOpts(r.o.ID, new(api.QueryOptions).WithContext(ctx))
	if err != nil && !unknown(err) {
		return fmt.Errorf("deregistering %s: %w", r.o.ID, err)
	}
	r.o.Log.Info("deregistered", "as", r.o.Service, "id", r.o.ID)
	return nil
}

// warn tells of the first, second, fourth, eighth … failure in a row.
func (r *Registration) warn(err error, failures int) {
	if failures&(failures-1) == 0 {
		r.o.Log.Warn("the process cannot be registered", "as", r.o.Service, "id", r.o.ID,
			"agent", r.o.Agent, "error", err, "failures", failures)
	}
}

// delay is the wait before the next look, by chance up to a quarter longer or
// shorter, so that a thousand processes do not come back all at once.
func (r *Registration) delay(failures int) time.Duration {
	d := r.o.Times.Watch
	if failures > 0 && failures < 16 {
		d = min(d, r.o.Times.Least<<(failures-1))
	}
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}

// sleep waits for d, and reports whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// entry is what is registered.
func (r *Registration) entry(listening, checked net.Addr) (*api.AgentServiceRegistration, error) {
	host, text, err := r.reached(listening)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	check, err := r.check(checked)
	if err != nil {
		return nil, err
	}
	meta, tags := split(r.o.Labels)
	return &api.AgentServiceRegistration{
		Name: r.o.Service, ID: r.o.ID, Address: host, Port: port, Meta: meta, Tags: tags, Check: check,
	}, nil
}

// check is what the agent asks whether the process is ready.
func (r *Registration) check(at net.Addr) (*api.AgentServiceCheck, error) {
	host, port, err := r.reached(at)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "127.0.0.1" // whoever is reached at the address of the agent's node is on it
	}
	status, scheme := api.HealthCritical, "http"
	if r.o.Passing {
		status = api.HealthPassing
	}
	if r.o.CheckTLS {
		scheme = "https"
	}
	return &api.AgentServiceCheck{
		Name:          r.o.Check,
		HTTP:          scheme + "://" + net.JoinHostPort(host, port) + r.o.Check,
		TLSSkipVerify: r.o.CheckTLS,
		Interval:      r.o.Times.Interval.String(), Timeout: r.o.Times.CheckLimit.String(),
		DeregisterCriticalServiceAfter: r.o.Times.ForgetAfter.String(),
		Status:                         status,
	}, nil
}

// reached returns the host and port at which others reach what listens on an
// address. The host is "" where that is the one of the agent's node.
func (r *Registration) reached(listening net.Addr) (host, port string, err error) {
	listens, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return "", "", fmt.Errorf("registration: %w", err)
	}
	if ip := net.ParseIP(listens); r.o.Address == "" && !ip.IsUnspecified() {
		return listens, port, nil
	}
	return r.o.Address, port, nil
}
