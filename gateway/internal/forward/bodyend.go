package forward

import (
	"bytes"
	"errors"
)

// errBrokenChunks says that a request's body in chunks is not framed as HTTP asks for.
var errBrokenChunks = errors.New("the chunks of the body are not framed as HTTP asks for")

// bodyEnd finds the end of a request's body in chunks without taking anything from it.
// It is stricter than net/http, so that the two cannot take different bytes for the
// end.
type bodyEnd struct{ chunks chunks }

// follow takes the next bytes. It returns how many of them belong to the body, and
// whether they are the last of it.
func (e *bodyEnd) follow(p []byte) (n int, done bool, err error) {
	if n, err = e.chunks.follow(p); err != nil {
		return n, false, errBrokenChunks
	}
	if !e.chunks.done() {
		return n, false, nil
	}
	t := e.chunks.trailer
	if bytes.Count(t, []byte("\n")) != bytes.Count(t, []byte("\r\n")) {
		return n, false, errBrokenChunks
	}
	e.chunks = chunks{}
	return n, true, nil
}
