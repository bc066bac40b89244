package forward

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
)

// requestReader makes requests of heads that were scanned and taken. What it makes is
// what http.ReadRequest would, but for what that makes up, and without its nine
// allocations: the memory is used again for the next request. So nobody may keep the
// request or its Header beyond its end. The strings in them may be kept, for they are
// parts of one copy of the head.
type requestReader struct {
	request http.Request
	url     url.URL
	fields  http.Header
	lines   []string // the values of fields, one line after the other
}

// fieldsKept is for how many fields memory is kept from one request to the next.
const fieldsKept = 32

// read makes a request of a whole head that scanRequest has taken. It fails where
// net/url does not take the target.
func (q *requestReader) read(head []byte, h *requestHead, state *tls.ConnectionState, remote string) (*http.Request, error) {
	text := string(head)
	line, rest := answerLine(text)
	target := line[len(h.method)+1:][:len(h.target)]
	u, err := q.parse(target)
	if err != nil {
		return nil, err
	}
	if q.fields == nil {
		q.fields = make(http.Header)
	}
	q.request = http.Request{
		Method: methodName(line[:len(h.method)]), URL: u, RequestURI: target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: q.fields, Body: http.NoBody, ContentLength: h.length, Close: h.close,
		RemoteAddr: remote, TLS: state,
	}
	for line, rest = answerLine(rest); line != ""; line, rest = answerLine(rest) {
		q.field(line)
	}
	return &q.request, nil
}

// field adds a field line.
func (q *requestReader) field(line string) {
	name, value, _ := strings.Cut(line, ":")
	name, _ = fieldKey(name) // it is a token: the line was scanned
	value = trimBlanks(value)
	if name == "Host" {
		q.request.Host = value
		return
	}
	q.lines = append(q.lines, value)
	if there := q.fields[name]; there != nil {
		q.fields[name] = append(there, value)
		return
	}
	n := len(q.lines)
	q.fields[name] = q.lines[n-1 : n : n] // another value of the field goes elsewhere
}

// reset forgets the request, so that it is not held on to.
func (q *requestReader) reset() {
	if len(q.lines) > fieldsKept {
		*q = requestReader{}
		return
	}
	clear(q.fields)
	clear(q.lines)
	q.request, q.url, q.lines = http.Request{}, url.URL{}, q.lines[:0]
}

// parse does what url.ParseRequestURI does with a target in origin-form. Most paths
// have nothing in them that could be written in two ways.
func (q *requestReader) parse(target string) (*url.URL, error) {
	path, query, asked := strings.Cut(target, "?")
	for i := range len(path) {
		if !plainInPath[path[i]] {
			return url.ParseRequestURI(target)
		}
	}
	q.url = url.URL{Path: path, RawQuery: query, ForceQuery: asked && query == ""}
	return &q.url, nil
}

// plainInPath are the bytes that stand for themselves in a path, and are never written
// in another way.
var plainInPath = byteSet("/-._~", alphanumeric)

// methodName returns a method, without the text that it is a part of where it is one
// of those that are used.
func methodName(s string) string {
	switch s {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodPost:
		return http.MethodPost
	}
	return s
}
