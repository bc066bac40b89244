package forward

import (
	"bytes"
	"net/http"
)

// answerHeadMost is the longest head of an answer, 1xx answers before it not
// counted.
const answerHeadMost = 256 << 10

// headFacts are what http.ReadResponse hides of an answer's head.
type headFacts struct {
	status     int
	connection []string // names in Connection fields
	pragma     bool     // Pragma without Cache-Control, which net/http then makes up
}

func (f *headFacts) informational() bool {
	return 100 <= f.status && f.status < 200 && f.status != http.StatusSwitchingProtocols
}

func (f *headFacts) bodiless() bool {
	return f.status == http.StatusNoContent || f.status == http.StatusNotModified
}

// headSize returns the size of the head at the start of p, its blank line
// included, or -1 when that has not come yet. Lines end with LF, be there a CR
// before it or not, as the transport reads them.
func headSize(p []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(p[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
		switch {
		case at < len(p) && p[at] == '\n':
			return at + 1
		case at+1 < len(p) && p[at] == '\r' && p[at+1] == '\n':
			return at + 2
		}
	}
}

// readHead reads the facts out of a whole head. What is malformed it passes over:
// the transport judges that.
func readHead(head []byte) headFacts {
	line, rest, _ := bytes.Cut(head, []byte("\n"))
	f := headFacts{status: statusOf(line)}
	pragma, cacheControl := false, false
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		switch len(name) {
		case len("Connection"):
			if bytes.EqualFold(name, []byte("Connection")) {
				f.connection = append(f.connection, tokens(value)...)
			}
		case len("Pragma"):
			pragma = pragma || bytes.EqualFold(name, []byte("Pragma"))
		case len("Cache-Control"):
			cacheControl = cacheControl || bytes.EqualFold(name, []byte("Cache-Control"))
		}
	}
	f.pragma = pragma && !cacheControl
	return f
}

// statusOf reads the status of "HTTP/1.1 200 OK", 0 when there is none.
func statusOf(line []byte) int {
	_, rest, _ := bytes.Cut(line, []byte(" "))
	if len(rest) < 3 {
		return 0
	}
	status := 0
	for _, c := range rest[:3] {
		if c < '0' || c > '9' {
			return 0
		}
		status = status*10 + int(c-'0')
	}
	return status
}

// tokens returns the names in a Connection field's value, in canonical form, but
// for the options that are no names.
func tokens(value []byte) []string {
	var names []string
	for part := range bytes.SplitSeq(value, []byte(",")) {
		part = bytes.TrimSpace(part)
		if len(part) == 0 || bytes.EqualFold(part, []byte("close")) || bytes.EqualFold(part, []byte("keep-alive")) {
			continue
		}
		names = append(names, http.CanonicalHeaderKey(string(part)))
	}
	return names
}
