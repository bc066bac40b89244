package storm_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// backend is the service behind the gateway.
type backend struct {
	address string
	answer  []byte // what every long answer holds
	sum     string // of answer

	server *http.Server
	done   chan error
	conns  sync.WaitGroup // that are open

	harmed atomic.Int64 // pieces of uploads that were not what was sent
	taken  atomic.Int64 // bytes of huge uploads
}

// answerSize is more than all socket buffers on the way hold.
const answerSize = 8 << 20

// webSocketID is the one that RFC 6455 has every server answer with.
const webSocketID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

func startBackend() (*backend, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &backend{address: l.Addr().String(), answer: make([]byte, answerSize), done: make(chan error, 1)}
	_, _ = rand.NewChaCha8([32]byte{'s', 't', 'o', 'r', 'm'}).Read(b.answer) // never fails
	b.sum = sum(b.answer)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /long", b.long)
	mux.HandleFunc("POST /take", b.take)
	mux.HandleFunc("POST /huge", b.huge)
	mux.HandleFunc("GET /websocket", b.webSocket)
	mux.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	b.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ConnState: b.count}
	go func() { b.done <- b.server.Serve(l) }()
	return b, nil
}

// count keeps count of the connections that the server has.
func (b *backend) count(_ net.Conn, now http.ConnState) {
	switch now {
	case http.StateNew:
		b.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		b.conns.Done()
	}
}

func (b *backend) close() error {
	err := b.server.Close()
	if served := <-b.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	b.conns.Wait()
	return err
}

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// long answers with many bytes, chunked if it is asked for.
func (b *backend) long(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "chunked" {
		w.Header().Set("Content-Length", strconv.Itoa(len(b.answer)))
	}
	for rest := b.answer; len(rest) > 0; {
		n := min(64<<10, len(rest))
		if _, err := w.Write(rest[:n]); err != nil {
			return
		}
		rest = rest[n:]
	}
}

// take reads the body and answers with its sum.
func (b *backend) take(w http.ResponseWriter, r *http.Request) {
	hash := sha256.New()
	if _, err := io.Copy(hash, r.Body); err != nil {
		return
	}
	_, _ = io.WriteString(w, hex.EncodeToString(hash.Sum(nil)))
}

// huge reads 1 MB a second, as long as something comes, and compares it with what
// the clients send: the long answer's bytes, over and over.
func (b *backend) huge(_ http.ResponseWriter, r *http.Request) {
	const pieces = 16
	tick := time.NewTicker(time.Second / pieces)
	defer tick.Stop()
	piece := make([]byte, 1_000_000/pieces)
	for at := 0; ; {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		n, err := io.ReadFull(r.Body, piece)
		if !b.continues(at, piece[:n]) {
			b.harmed.Add(1)
		}
		at += n
		b.taken.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// continues reports whether a piece is what stands at a place of the endless upload.
func (b *backend) continues(at int, piece []byte) bool {
	for len(piece) > 0 {
		from := b.answer[at%len(b.answer):]
		n := min(len(from), len(piece))
		if !bytes.Equal(from[:n], piece[:n]) {
			return false
		}
		at, piece = at+n, piece[n:]
	}
	return true
}

// accept returns what a server answers to a WebSocket's key.
func accept(key string) string {
	s := sha1.Sum([]byte(key + webSocketID))
	return base64.StdEncoding.EncodeToString(s[:])
}

// webSocket takes the connection over and sends each frame back, unmasked.
func (b *backend) webSocket(w http.ResponseWriter, r *http.Request) {
	b.conns.Add(1)
	defer b.conns.Done()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(r.Context(), func() { _ = conn.Close() })
	defer stop()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "+
		accept(r.Header.Get("Sec-WebSocket-Key"))+"\r\n\r\n")
	for {
		text, err := readFrame(buffered.Reader)
		if err != nil {
			return
		}
		if _, err := conn.Write(frame(text, nil)); err != nil {
			return
		}
	}
}

const (
	finalText   = 0x81 // of a frame's first byte: the last of a text
	maskedBit   = 0x80
	lengthBits  = 0x7f
	longestText = 125 // of a frame with a length of one byte
)

// frame returns a text of no more than longestText bytes as a frame, masked if there
// is a mask of four bytes.
func frame(text string, mask []byte) []byte {
	b := []byte{finalText, byte(len(text))}
	if mask == nil {
		return append(b, text...)
	}
	b[1] |= maskedBit
	b = append(b, mask...)
	for i := range len(text) {
		b = append(b, text[i]^mask[i%len(mask)])
	}
	return b
}

// readFrame reads such a frame.
func readFrame(r *bufio.Reader) (string, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	if head[0] != finalText || head[1]&lengthBits > longestText {
		return "", errors.New("not a frame that we send")
	}
	var mask [4]byte
	if head[1]&maskedBit != 0 {
		if _, err := io.ReadFull(r, mask[:]); err != nil {
			return "", err
		}
	}
	text := make([]byte, head[1]&lengthBits)
	_, err := io.ReadFull(r, text)
	for i := range text {
		text[i] ^= mask[i%len(mask)]
	}
	return string(text), err
}
