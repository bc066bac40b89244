package forward

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"specialroutes.example/gateway/internal/filter"
)

// mend takes away what http.ReadResponse has let slip or made up: the fields that
// a Connection field named beside "close", and a Cache-Control that was never
// sent.
func mend(res *http.Response, facts *headFacts) {
	if facts == nil {
		return
	}
	for _, name := range facts.connection {
		switch name {
		case "Content-Length", "Upgrade": // framing; judged elsewhere
		default:
			delete(res.Header, name)
		}
	}
	if facts.pragma {
		delete(res.Header, "Cache-Control")
	}
}

// modify finishes the head of the upstream's answer. An error ends the request
// without it.
func (c *call) modify(res *http.Response) error {
	if res.StatusCode < http.StatusOK {
		return c.switchProtocols(res)
	}
	c.watch.enter(answering)
	if eventStream(res.Header) {
		c.watch.enter(streaming)
	}
	c.finishHead(res.Header)
	c.answer.length = res.ContentLength
	if c.ex.Request.Method == http.MethodHead || res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified {
		c.answer.length = 0
	}
	// A field without a line keeps net/http from making one up.
	if _, ok := res.Header["Content-Type"]; !ok {
		c.answer.Header()["Content-Type"] = nil
	}
	c.cleanTrailers(res)
	c.makeRoomForTrailers(res)
	res.Body = &answerBody{ReadCloser: res.Body, call: c, response: res}
	return nil
}

// finishHead runs the post filters.
func (c *call) finishHead(h http.Header) {
	c.ex.Answer = h
	c.proxy.chain.Answer(c.ex)
}

// switchProtocols lets a 101 pass that answers a WebSocket's request, and nothing
// else below 200.
func (c *call) switchProtocols(res *http.Response) error {
	in, out := c.ex.Request.Header["Upgrade"], res.Header["Upgrade"]
	if res.StatusCode != http.StatusSwitchingProtocols || len(in) == 0 || len(out) != 1 ||
		!strings.EqualFold(out[0], in[0]) || len(out[0]) != len(in[0]) {
		return fmt.Errorf("%w: status %d to a request without a matching upgrade", errBadAnswer, res.StatusCode)
	}
	filter.RemoveHopByHop(res.Header)
	c.finishHead(res.Header)
	res.Header["Connection"], res.Header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	c.watch.enter(streaming)
	return nil
}

// eventStream reports whether an answer is text/event-stream, which may be silent
// for long.
func eventStream(h http.Header) bool {
	lines := h["Content-Type"]
	if len(lines) == 0 {
		return false
	}
	kind, _, _ := strings.Cut(lines[0], ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// cleanTrailers removes announced trailer fields that may not be passed on.
func (c *call) cleanTrailers(res *http.Response) {
	for name := range res.Trailer {
		if !c.ex.AnswerTrailer(name) {
			delete(res.Trailer, name)
		}
	}
}

// makeRoomForTrailers leaves out the length of an answer over HTTP/2 that announces
// trailers, for a client of HTTP/1 that wants them: they only go behind chunks.
func (c *call) makeRoomForTrailers(res *http.Response) {
	r := c.ex.Request
	if len(res.Trailer) > 0 && res.ContentLength > 0 && r.ProtoMajor == 1 && len(r.Header["Te"]) > 0 {
		delete(res.Header, "Content-Length")
		c.answer.length = -1
	}
}

// answerBody is the body of an upstream's answer.
type answerBody struct {
	io.ReadCloser
	call     *call
	response *http.Response
}

// Read reads from the upstream. At the end of the body the trailers are there.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.call.watch.progress()
	switch {
	case err == io.EOF:
		b.call.answer.ended.Store(true)
		b.call.cleanTrailers(b.response)
	case err != nil:
		b.call.upstream = err
	}
	return n, err
}
