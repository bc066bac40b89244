package forward

import (
	"bytes"

	"specialroutes.example/gateway/internal/filter"
)

// hostBytes are the bytes of a name, an address and a port. What they have to make
// together is looked at later.
var hostBytes = byteSet("-._:[]", alphanumeric)

const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func byteSet(members ...string) (set [256]bool) {
	for _, some := range members {
		for i := range len(some) {
			set[some[i]] = true
		}
	}
	return set
}

// isTokenByte reports whether a token may hold c (RFC 9110, 5.6.2): methods and names of
// fields are tokens.
func isTokenByte(c byte) bool { return nameBytes[c] != notInToken }

func isToken(p []byte) bool {
	for _, c := range p {
		if !isTokenByte(c) {
			return false
		}
	}
	return len(p) > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// hasControl reports whether p holds a control character or a blank.
func hasControl(p []byte) bool {
	for _, c := range p {
		if c <= ' ' || c == 0x7f {
			return true
		}
	}
	return false
}

// trimBlanks cuts spaces and tabs off both ends.
func trimBlanks[T ~string | ~[]byte](s T) T {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// hasOption reports whether a list of tokens holds one.
func hasOption(list []byte, lower string) bool {
	for len(list) > 0 {
		var option []byte
		option, list, _ = bytes.Cut(list, []byte(","))
		if filter.EqualFold(trimBlanks(option), lower) {
			return true
		}
	}
	return false
}
