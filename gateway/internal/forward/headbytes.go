package forward

import "bytes"

// tokenBytes are the bytes of a token (RFC 9110, 5.6.2), of which methods and names
// of fields are made.
var tokenBytes = byteSet("!#$%&'*+-.^_`|~", alphanumeric)

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

func isToken(p []byte) bool {
	for _, c := range p {
		if !tokenBytes[c] {
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
func trimBlanks(p []byte) []byte {
	for len(p) > 0 && (p[0] == ' ' || p[0] == '\t') {
		p = p[1:]
	}
	for len(p) > 0 && (p[len(p)-1] == ' ' || p[len(p)-1] == '\t') {
		p = p[:len(p)-1]
	}
	return p
}

// foldsTo compares p with lower, in ASCII. bytes.EqualFold would take the Kelvin
// sign for a k.
func foldsTo(p []byte, lower string) bool {
	if len(p) != len(lower) {
		return false
	}
	for i, c := range p {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// hasOption reports whether a list of tokens holds one.
func hasOption(list []byte, lower string) bool {
	for len(list) > 0 {
		var option []byte
		option, list, _ = bytes.Cut(list, []byte(","))
		if foldsTo(trimBlanks(option), lower) {
			return true
		}
	}
	return false
}
