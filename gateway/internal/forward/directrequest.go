//go:build linux

package forward

import (
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"
)

// send writes the request to the attempt's connection, in one piece where the
// kernel takes it. It returns how many bytes were written.
func (c *carriage) send() (int, error) {
	c.out = c.appendRequest(c.out[:0])
	l, sent := c.link, 0
	for now := c.now; ; now = time.Now() {
		limit := c.within(c.ex.Route.Timeouts.Idle, now)
		if err := l.writeDue.reach(now, limit, l.conn.SetWriteDeadline); err != nil {
			return sent, err
		}
		n, err := l.conn.Write(c.out[sent:])
		sent += n
		if err == nil || n == 0 || !l.plain || !errors.Is(err, os.ErrDeadlineExceeded) {
			return sent, err
		}
	}
}

// appendRequest appends the attempt's request: the target's base, the raw path and
// the raw query byte for byte, what the filters have left of the fields, the length
// as it came, and the body.
func (c *carriage) appendRequest(dst []byte) []byte {
	ex, r := c.ex, c.ex.Request
	target := &ex.Pick.Target
	if ex.Entry.Retries > 0 || ex.Entry.Instance != ex.Pick.Name { // else a filter has done it
		ex.Use(ex.Pick, r.Header)
	}
	dst = append(append(dst, r.Method...), ' ')
	dst = append(append(dst, target.Base...), ex.Path()...)
	if ex.Target.HasQuery {
		dst = append(append(dst, '?'), ex.Target.Query...)
	}
	dst = append(dst, " HTTP/1.1\r\n"...)
	host := target.Authority
	if ex.Route.PreserveHost {
		host = r.Host
	}
	dst = appendField(dst, "Host", host)
	dst = appendFields(dst, r.Header)
	if len(c.body) > 0 || len(r.Header["Content-Length"]) > 0 || bodyExpected(r.Method) {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(c.body)), 10)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	return append(dst, c.body...)
}

// bodyExpected reports whether a server may expect a body with a method, and so wait
// for one where no length says that there is none (RFC 9110, section 8.6).
func bodyExpected(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}
