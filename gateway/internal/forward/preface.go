package forward

import "strings"

// preface is how a connection of HTTP/2 begins (RFC 9113, 3.4), as far as no request
// of HTTP/1 does.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// isPreface reports whether p begins as HTTP/2 does. A shorter one is not known to
// yet.
func isPreface(p []byte) bool {
	return strings.HasPrefix(string(p[:min(len(p), len(preface))]), "PRI * HTTP/2.0\r\n")
}
