package forward

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// framing is how the body of an answer is delimited for the client.
type framing uint8

const (
	framedByNothing framing = iota // there is no body, and nothing is said of one
	framedByLength                 // by Content-Length; the answer to HEAD names one too
	framedByChunks                 // by chunks
)

// answerForm is what the head of an answer says beside its fields.
type answerForm struct {
	status  int
	framing framing
	length  int64  // of the body, where that delimits it
	last    bool   // the connection is closed after the answer
	date    []byte // for an answer that has none; nil: none is added
}

// appendAnswerHead appends the head of an answer to dst, blank line included. What
// h says of framing and of the connection is left out: the form says that. Values
// are written on one line, whatever they hold.
func appendAnswerHead(dst []byte, h http.Header, form answerForm) []byte {
	dst = appendStatusLine(dst, form.status)
	dst = appendFields(dst, h)
	if form.date != nil && h["Date"] == nil {
		dst = append(append(append(dst, "Date: "...), form.date...), "\r\n"...)
	}
	switch form.framing {
	case framedByLength:
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, form.length, 10)
		dst = append(dst, "\r\n"...)
	case framedByChunks:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	}
	if form.last {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(dst, "\r\n"...)
}

func appendStatusLine(dst []byte, status int) []byte {
	if status == http.StatusOK {
		return append(dst, "HTTP/1.1 200 OK\r\n"...)
	}
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	if text := http.StatusText(status); text != "" {
		dst = append(dst, text...)
	} else {
		dst = append(dst, "status code "...)
		dst = strconv.AppendInt(dst, int64(status), 10)
	}
	return append(dst, "\r\n"...)
}

// appendFields appends field lines, but for those of framing and connection. It looks
// at all of them together for line ends that are none of ours: next to never there are
// any, and to look at each value takes longer.
func appendFields(dst []byte, h http.Header) []byte {
	start, lines := len(dst), 0
	for name, values := range h {
		if ofFraming(name) {
			continue
		}
		for _, value := range values {
			dst = append(append(append(append(dst, name...), ": "...), value...), "\r\n"...)
			lines++
		}
	}
	if written := dst[start:]; bytes.Count(written, lf) == lines && bytes.Count(written, cr) == lines {
		return dst
	}
	return appendOnOneLine(dst[:start], h)
}

// ofFraming reports whether the form of a message says what a field says.
func ofFraming(name string) bool {
	return name == "Content-Length" || name == "Transfer-Encoding" || name == "Connection"
}

var lf, cr = []byte("\n"), []byte("\r")

// appendOnOneLine does the same, with a space for each line end in a value.
func appendOnOneLine(dst []byte, h http.Header) []byte {
	for name, values := range h {
		if ofFraming(name) {
			continue
		}
		for _, value := range values {
			dst = appendField(dst, name, value)
		}
	}
	return dst
}

func appendField(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), ": "...)
	start := len(dst)
	dst = append(dst, value...)
	if strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, '\r') >= 0 {
		for i := start; i < len(dst); i++ {
			if dst[i] == '\n' || dst[i] == '\r' {
				dst[i] = ' '
			}
		}
	}
	return append(dst, "\r\n"...)
}

// dates writes the Date field's value once a second. It is safe for concurrent
// use.
type dates struct{ last atomic.Pointer[date] }

type date struct {
	second int64
	text   []byte
}

// at returns the value for a moment. It must not be changed.
func (d *dates) at(now time.Time) []byte {
	second := now.Unix()
	if last := d.last.Load(); last != nil && last.second == second {
		return last.text
	}
	fresh := &date{second: second, text: now.UTC().AppendFormat(nil, http.TimeFormat)}
	d.last.Store(fresh)
	return fresh.text
}
