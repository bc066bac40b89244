package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// routes plays specialroutes as far as the seed sees it.
type routes struct {
	mu       sync.Mutex
	notReady int    // answers of /readyz that are 503 yet
	record   []byte // nil: none
	puts     int
}

func (r *routes) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch req.Method + " " + req.URL.Path {
	case "GET /readyz":
		if r.notReady > 0 {
			r.notReady--
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "GET " + recordPath:
		if r.record == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(r.record)
	case "PUT " + recordPath:
		r.puts++
		r.record, _ = io.ReadAll(req.Body)
		w.WriteHeader(http.StatusCreated)
	default:
		w.WriteHeader(http.StatusTeapot)
	}
}

func runSeed(t *testing.T, r *routes, wait time.Duration) error {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	args := []string{"-specialroutes", server.URL, "-endpoint", "http://orgservice-new:8087", "-wait", wait.String()}
	return seed(t.Context(), args, io.Discard, io.Discard)
}

func TestSeed_WritesTheBooksRecordOnceSpecialroutesIsReady(t *testing.T) {
	t.Parallel()
	r := &routes{notReady: 2}
	if err := runSeed(t, r, time.Minute); err != nil {
		t.Fatal(err)
	}
	var got bookRecord
	if err := json.Unmarshal(r.record, &got); err != nil {
		t.Fatal(err)
	}
	want := bookRecord{ServiceName: "organizationservice", Active: "Y", Endpoint: "http://orgservice-new:8087", Weight: 5}
	if got != want {
		t.Errorf("the record is %+v, want %+v", got, want)
	}
}

func TestSeed_LeavesARecordAsItIs(t *testing.T) {
	t.Parallel()
	r := &routes{record: []byte(`{"weight":0}`)}
	if err := runSeed(t, r, time.Minute); err != nil {
		t.Fatal(err)
	}
	if r.puts != 0 {
		t.Error("the record was written over")
	}
}

func TestSeed_GivesUpWhenSpecialroutesDoesNotBecomeReady(t *testing.T) {
	t.Parallel()
	r := &routes{notReady: 1 << 30}
	if err := runSeed(t, r, 50*time.Millisecond); err == nil {
		t.Error("no error")
	}
	if r.puts != 0 {
		t.Error("a record was written")
	}
}

func TestSeed_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"now"}, {"-unknown"}} {
		if err := seed(context.Background(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("seed(%q): no error", args)
		}
	}
}
