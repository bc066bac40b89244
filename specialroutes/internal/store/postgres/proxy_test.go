package postgres_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between a store and its server and can fall silent: connections
// stay open and nothing comes through, as when a firewall drops the packets.
type proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	lines []*line
	word  []byte // silence answers once this was sent to the server
}

// line is one connection through the proxy.
type line struct {
	mu     sync.Mutex
	silent [2]bool // to the server, to the client
	ends   [2]net.Conn
}

const (
	toServer = iota
	toClient
)

// newProxy starts a proxy to the server of an address; it ends with the test.
func newProxy(t *testing.T, address string) *proxy {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: u.Host}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.connect(client, &wg)
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for _, line := range p.lines {
			line.ends[0].Close()
			line.ends[1].Close()
		}
		p.mu.Unlock()
		wg.Wait()
	})
	return p
}

// address returns an address with the proxy in the server's place.
func (p *proxy) address(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

func (p *proxy) connect(client net.Conn, wg *sync.WaitGroup) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		client.Close()
		return
	}
	l := &line{ends: [2]net.Conn{server, client}}
	p.mu.Lock()
	p.lines = append(p.lines, l)
	p.mu.Unlock()
	wg.Go(func() { p.copy(l, toServer) })
	wg.Go(func() { p.copy(l, toClient) })
}

// copy moves bytes one way until an end is closed; when the line is silent it reads
// on and drops them.
func (p *proxy) copy(l *line, way int) {
	from, to := l.ends[1-way], l.ends[way]
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if way == toServer {
			p.listen(l, buf[:n])
		}
		if !l.isSilent(way) {
			if _, errWrite := to.Write(buf[:n]); errWrite != nil {
				err = errWrite
			}
		}
		if err != nil {
			if err == io.EOF && l.isSilent(way) {
				return // the other end must not learn of it
			}
			to.Close()
			return
		}
	}
}

// listen falls silent towards the client when the word is sent.
func (p *proxy) listen(l *line, sent []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.word != nil && bytes.Contains(sent, p.word) {
		p.word = nil
		l.fallSilent(toClient)
	}
}

func (l *line) isSilent(way int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent[way]
}

func (l *line) fallSilent(ways ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, way := range ways {
		l.silent[way] = true
	}
}

// silence makes all connections that there are silent; new ones work.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		l.fallSilent(toServer, toClient)
	}
}

// silenceAnswersAfter makes the next connection on which a word is sent silent
// towards the client, from then on.
func (p *proxy) silenceAnswersAfter(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word = []byte(word)
}
