package forward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"specialroutes.example/gateway/internal/accesslog"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/services/problem"
)

// refuseHead returns the answer to a request whose head is refused, and tells the
// observer. head is what has come of it. The connection ends with the answer.
func (s *Server) refuseHead(r *filter.Refusal, head []byte, peer net.Addr) []byte {
	e := accesslog.Entry{Time: time.Now(), Status: r.Status, Code: r.Code}
	e.Method, e.Path, e.Host = roughly(head)
	if id, ok := correlationIn(head); ok {
		e.CorrelationID = id
	} else if s.NewID != nil {
		e.CorrelationID, e.CorrelationReplaced = s.NewID(), true
	}
	if ap, err := netip.ParseAddrPort(peer.String()); err == nil {
		e.Client = ap.Addr().Unmap().WithZone("")
	}
	answer := problemAnswer(problem.Problem{Status: r.Status, Code: r.Code, Detail: r.Detail, CorrelationID: e.CorrelationID})
	if s.Observer != nil {
		s.Observer.Observe(&e)
	}
	return answer
}

// problemAnswer writes an answer that ends its connection.
func problemAnswer(p problem.Problem) []byte {
	body, err := json.Marshal(p)
	if err != nil { // it holds nothing that JSON cannot express
		panic(err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: no-store\r\nConnection: close\r\n",
		p.Status, http.StatusText(p.Status), problem.ContentType, len(body)+1)
	if p.CorrelationID != "" {
		fmt.Fprintf(&out, "%s: %s\r\n", filter.CorrelationID, p.CorrelationID)
	}
	out.WriteString("\r\n")
	out.Write(body)
	out.WriteByte('\n')
	return out.Bytes()
}

// roughly reads for the log what can be read of a refused head.
func roughly(head []byte) (method, path, host string) {
	line, rest, _ := bytes.Cut(head, []byte("\n"))
	m, target, _ := bytes.Cut(line, []byte(" "))
	if !isToken(m) {
		return "", "", ""
	}
	target, _, _ = bytes.Cut(target, []byte(" "))
	target, _, _ = bytes.Cut(target, []byte("?"))
	if lines := linesOf(rest, "host"); len(lines) == 1 {
		host = string(lines[0])
	}
	return string(m), string(target), host
}

// correlationIn returns the usable correlation ID in a refused head.
func correlationIn(head []byte) (string, bool) {
	_, rest, _ := bytes.Cut(head, []byte("\n"))
	lines := linesOf(rest, "tmx-correlation-id")
	if len(lines) != 1 || !filter.UsableCorrelationID(string(lines[0])) {
		return "", false
	}
	return string(lines[0]), true
}

// linesOf returns the values of a field, up to the blank line. What is not a field
// it passes over.
func linesOf(fields []byte, lower string) (values [][]byte) {
	for len(fields) > 0 {
		var line []byte
		var whole bool
		if line, fields, whole = bytes.Cut(fields, []byte("\n")); !whole {
			break // the value may go on
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			break
		}
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && filter.EqualFold(name, lower) {
			values = append(values, trimBlanks(value))
		}
	}
	return values
}

// linger lets the client read what was written, though it may still be sending: a
// socket that is closed with bytes unread resets, and the reset overtakes the answer.
func linger(c net.Conn) {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	end := time.Now().Add(lingering)
	if c.SetReadDeadline(end) != nil {
		return
	}
	var sink [1024]byte
	for time.Now().Before(end) {
		if _, err := c.Read(sink[:]); err != nil {
			return
		}
	}
}
