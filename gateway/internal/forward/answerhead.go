package forward

import (
	"net/http"
	"strconv"
)

// bodyFraming is how an answer's body is delimited for the client.
type bodyFraming uint8

const (
	framedAsIs    bodyFraming = iota // by what the header says, or there is no body
	framedLength                     // by Content-Length
	framedChunked                    // in chunks
	framedClose                      // by the end of the connection
)

// appendAnswerHead appends the head of an answer to dst, blank line included. It
// writes h but for Content-Length, Transfer-Encoding and Connection, which follow
// from how the body is framed, and date where h has no Date. A field whose lines
// are nil is left out.
func appendAnswerHead(dst []byte, status int, h http.Header, framing bodyFraming, length int64, last bool, date []byte) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	dst = append(dst, http.StatusText(status)...)
	return append(dst, "\r\n\r\n"...)
}
