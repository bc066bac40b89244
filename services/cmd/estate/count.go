package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"time"

	"specialroutes.example/services/estate"
)

// countInterval is how often the gateway's log is read.
const countInterval = 200 * time.Millisecond

// tally counts calls of the organization service by who answered them; the others
// are the instances of the tours.
type tally struct{ old, new, other int }

func (t tally) String() string {
	text := fmt.Sprintf("OLD %d   NEW %d", t.old, t.new)
	if t.other > 0 {
		text += fmt.Sprintf("   others %d", t.other)
	}
	return text
}

// reader adds up a gateway's access log.
type reader struct {
	newPort string // of the new service, whose endpoint a record may spell as it likes
	log     *bufio.Reader
	partial []byte // a line whose end is not written yet
	tally   tally
}

// count shows the tally whenever it changes, until ctx ends: on a terminal in one
// line, else in a line each time. Processes that are gone are told of between.
func count(ctx context.Context, e *estate.Estate, gone <-chan *estate.Process, out io.Writer) error {
	f, err := os.Open(e.Process(estate.Gateway).LogPath())
	if err != nil {
		return err
	}
	defer f.Close()
	endpoint, err := url.Parse(e.NewURL())
	if err != nil {
		return err
	}
	r := &reader{newPort: endpoint.Port(), log: bufio.NewReader(f)}
	begin, end := "", "\n"
	if terminal(out) {
		begin, end = "\r\x1b[K", ""
	}
	fmt.Fprint(out, begin, r.tally, end)
	tick := time.NewTicker(countInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-gone:
			fmt.Fprintf(out, "%s%s is gone (%s); the others go on\n", begin, p.Name(), p.LogPath())
			fmt.Fprint(out, begin, r.tally, end)
		case <-tick.C:
		}
		before := r.tally
		if err := r.read(); err != nil {
			return err
		}
		if r.tally != before {
			fmt.Fprint(out, begin, r.tally, end)
		}
	}
}

// read adds the lines that have come since.
func (r *reader) read() error {
	for {
		line, err := r.log.ReadBytes('\n')
		r.partial = append(r.partial, line...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r.add(r.partial)
		r.partial = r.partial[:0]
	}
}

// add counts a line if it is of a call of the organization service.
func (r *reader) add(line []byte) {
	var call struct {
		Service, Instance string
		Status            int
	}
	// Lines of another kind share the file.
	if json.Unmarshal(line, &call) != nil || call.Service != "organizationservice" || call.Status == 0 {
		return
	}
	_, port, _ := net.SplitHostPort(call.Instance) // an ID has none
	switch {
	case call.Instance == estate.OrgServiceOld:
		r.tally.old++
	case port == r.newPort:
		r.tally.new++
	default:
		r.tally.other++
	}
}

// terminal reports whether what is written to out is read by a person.
func terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
