package storm_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/estate"
	"specialroutes.example/services/estate/procfs"
)

// gateway is a process under storm.
type gateway struct {
	name       string
	process    *estate.Process
	pid        int
	url, admin string
	base       state // before the first storm
}

// address is the host:port of the data port.
func (g *gateway) address() string { return strings.TrimPrefix(g.url, "http://") }

// state is what is seen of a gateway from outside.
type state struct {
	goroutines     int
	descriptors    int            // without pipes
	pipes          int            // their descriptors
	kinds          map[string]int // descriptors by what they are
	resident, peak int64          // bytes
}

// What may differ from the start when a gateway is at rest: the connection that asks
// it, those to specialroutes, a goroutine that is just ending.
const (
	spareGoroutines  = 10
	spareDescriptors = 6
)

// restLimit is how long a gateway may take until it is at rest: its idle connections
// to upstreams close after a second, and what a client left is noticed within one.
const restLimit = 20 * time.Second

// client asks gateways and specialroutes.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}

// measure looks at the gateway.
func (g *gateway) measure(t *testing.T) state {
	t.Helper()
	s, err := g.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

func (g *gateway) state(ctx context.Context) (s state, err error) {
	text, err := ask(ctx, http.MethodGet, g.admin+"/metrics", "")
	if err != nil {
		return s, err
	}
	found := goroutinesLine.FindStringSubmatch(text)
	if found == nil {
		return s, fmt.Errorf("no go_goroutines in %s/metrics", g.admin)
	}
	if s.goroutines, err = strconv.Atoi(found[1]); err != nil {
		return s, err
	}
	if s.kinds, err = procfs.DescriptorKinds(g.pid); err != nil {
		return s, err
	}
	for kind, n := range s.kinds {
		if kind == "pipe" {
			s.pipes = n
		} else {
			s.descriptors += n
		}
	}
	memory, err := procfs.MemoryOf(g.pid)
	s.resident, s.peak = memory.Resident, memory.Peak
	return s, err
}

func (g *gateway) resetPeak(t *testing.T) {
	t.Helper()
	if err := procfs.ResetPeak(g.pid); err != nil {
		t.Fatal(err)
	}
}

// rest waits until the gateway has no more goroutines and descriptors than at the
// start, and returns its state then. Pipes are not among them: Go keeps those through
// which it has spliced, and gives them back when it collects garbage.
func (g *gateway) rest(t *testing.T) state {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), restLimit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s := g.measure(t)
		if s.goroutines <= g.base.goroutines+spareGoroutines && s.descriptors <= g.base.descriptors+spareDescriptors {
			return s
		}
		select {
		case <-ctx.Done():
			t.Errorf("%v after the storm the gateway has %d goroutines and %d descriptors (%v); %d and %d at the start",
				restLimit, s.goroutines, s.descriptors, s.kinds, g.base.goroutines, g.base.descriptors)
			return s
		case <-tick.C:
		}
	}
}

// givesPipesBack waits until the pipes are gone as well. A process that does nothing
// collects garbage every two minutes, and it takes three times.
func (g *gateway) givesPipesBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s := g.measure(t)
		if s.pipes <= g.base.pipes {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the gateway still has %d ends of pipes, %d at the start", s.pipes, g.base.pipes)
		case <-tick.C:
		}
	}
}

// complaints are the first lines of the gateway's log that tell of a failure.
func (g *gateway) complaints() string {
	text, err := os.ReadFile(g.process.LogPath())
	if err != nil {
		return err.Error()
	}
	var found strings.Builder
	const most = 30
	n := 0
	for line := range strings.Lines(string(text)) {
		if n < most && complaint.MatchString(line) {
			found.WriteString(line)
			n++
		}
	}
	return found.String()
}

var complaint = regexp.MustCompile(`"level":"(WARN|ERROR)"|"status":5|^panic|^fatal`)

// ask makes one call and returns the body of a 2xx.
func ask(ctx context.Context, method, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %.200s", method, url, res.Status, text)
	}
	return string(text), err
}
