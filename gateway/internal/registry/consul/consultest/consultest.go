// Package consultest is a Consul over real HTTP for the tests of those who ask it:
// it speaks the health endpoint with blocking queries, and can be made to give
// answers that the real one will not give on demand.
package consultest

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
)

// Query is one question that the server was asked.
type Query struct {
	Service, Token, Datacenter string
	Index                      uint64
	Wait                       time.Duration
	Stale                      bool
	At                         time.Time
}

// Server is a Consul. Its methods are safe for concurrent use.
type Server struct {
	URL string

	mu       sync.Mutex
	http     *httptest.Server
	index    uint64
	services map[string][]*api.ServiceEntry
	news     chan struct{} // closed at the next change
	instead  http.HandlerFunc
	header   http.Header
	queries  []Query
}

// NewServer returns a server that runs until the test ends. Close its clients
// before: questions may be open.
func NewServer(t testing.TB) *Server {
	s := &Server{index: 100, services: make(map[string][]*api.ServiceEntry), news: make(chan struct{}), header: make(http.Header)}
	s.http = httptest.NewServer(s)
	s.URL = s.http.URL
	t.Cleanup(s.http.Close)
	return s
}

// Set gives a service these instances and no others.
func (s *Server) Set(service string, entries ...*api.ServiceEntry) {
	s.change(func() { s.index++; s.services[service] = entries })
}

// SetIndex moves the index to any value, as a restored snapshot does, and answers
// all open questions.
func (s *Server) SetIndex(index uint64) { s.change(func() { s.index = index }) }

// SetHeader sets a field of all further answers.
func (s *Server) SetHeader(name, value string) { s.change(func() { s.header.Set(name, value) }) }

// Instead has all questions answered by h, also those that are open; nil answers
// them as Consul does.
func (s *Server) Instead(h http.HandlerFunc) { s.change(func() { s.instead = h }) }

func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.news)
	s.news = make(chan struct{})
}

// Queries returns the questions so far.
func (s *Server) Queries() []Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queries)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	service, ok := strings.CutPrefix(req.URL.Path, "/v1/health/service/")
	if !ok {
		http.NotFound(w, req)
		return
	}
	q := req.URL.Query()
	index, _ := strconv.ParseUint(q.Get("index"), 10, 64)
	wait, _ := time.ParseDuration(q.Get("wait"))
	s.mu.Lock()
	s.queries = append(s.queries, Query{
		Service: service, Token: req.Header.Get("X-Consul-Token"), Datacenter: q.Get("dc"),
		Index: index, Wait: wait, Stale: q.Has("stale"), At: time.Now(),
	})
	s.mu.Unlock()
	s.block(req, index, wait)
	s.mu.Lock()
	instead := s.instead
	if instead == nil {
		defer s.mu.Unlock()
		s.answer(w, service)
		return
	}
	s.mu.Unlock()
	instead(w, req)
}

// block waits until the index has passed the given one, or is below it.
func (s *Server) block(req *http.Request, index uint64, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		over := index == 0 || s.index != index || s.instead != nil
		news := s.news
		s.mu.Unlock()
		if over {
			return
		}
		select {
		case <-news:
		case <-timer.C:
			return
		case <-req.Context().Done():
			return
		}
	}
}

func (s *Server) answer(w http.ResponseWriter, service string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Consul-Index", strconv.FormatUint(s.index, 10))
	w.Header().Set("X-Consul-LastContact", "0")
	w.Header().Set("X-Consul-KnownLeader", "true")
	for name := range s.header {
		w.Header().Set(name, s.header.Get(name))
	}
	entries := s.services[service]
	if entries == nil {
		entries = []*api.ServiceEntry{}
	}
	_ = json.NewEncoder(w).Encode(entries) // the client has gone
}

// Entry is an instance that passes, on the node "node" at 10.9.9.9. Each change is
// made to it.
func Entry(id, address string, port int, changes ...func(*api.ServiceEntry)) *api.ServiceEntry {
	e := &api.ServiceEntry{
		Node:    &api.Node{Node: "node", Address: "10.9.9.9"},
		Service: &api.AgentService{ID: id, Address: address, Port: port},
		Checks: api.HealthChecks{
			{CheckID: "serfHealth", Status: api.HealthPassing},
			{CheckID: "service:" + id, ServiceID: id, Status: api.HealthPassing},
		},
	}
	for _, change := range changes {
		change(e)
	}
	return e
}

// Checks sets the states of the node's check and the service's.
func Checks(node, service string) func(*api.ServiceEntry) {
	return func(e *api.ServiceEntry) { e.Checks[0].Status, e.Checks[1].Status = node, service }
}

// Labels sets the meta and the tags.
func Labels(meta map[string]string, tags ...string) func(*api.ServiceEntry) {
	return func(e *api.ServiceEntry) { e.Service.Meta, e.Service.Tags = meta, tags }
}

// OnNode sets the node and its address.
func OnNode(name, address string) func(*api.ServiceEntry) {
	return func(e *api.ServiceEntry) { e.Node.Node, e.Node.Address = name, address }
}

// NewTLSServer is NewServer with TLS. ca is a file with its certificate.
func NewTLSServer(t testing.TB) (s *Server, ca string) {
	s = &Server{index: 100, services: make(map[string][]*api.ServiceEntry), news: make(chan struct{}), header: make(http.Header)}
	s.http = httptest.NewUnstartedServer(s)
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse it are meant to
	s.http.StartTLS()
	s.URL = s.http.URL
	t.Cleanup(s.http.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return s, ca
}
