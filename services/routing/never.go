package routing

import (
	"net/netip"
	"strings"
)

// maxHeaderValue is the longest value of a header that the gateway lets routing
// read, in bytes; it answers a longer one with 400.
const maxHeaderValue = 255

// valueDetail says why no request can have the value s, as the end of a sentence;
// "" when one can. kind is a Match.On.
func valueDetail(kind, s string) string {
	switch kind {
	case OnHeader:
		return headerDetail(s, false)
	case OnCookie:
		return cookieDetail(s)
	case OnPath:
		return pathDetail(s, false)
	case OnMethod:
		return methodDetail(s)
	case OnClient:
		if addr, err := netip.ParseAddr(s); err != nil || addr.Zone() != "" {
			return "must be an IP address"
		}
	}
	return "" // a parameter is decoded, and may be anything
}

// prefixDetail says why no request can have a value that begins with s.
func prefixDetail(kind, s string) string {
	switch kind {
	case OnHeader:
		return headerDetail(s, true)
	case OnCookie:
		return cookieDetail(s)
	case OnPath:
		return pathDetail(s, true)
	case OnMethod:
		return methodDetail(s)
	case OnClient:
		return "is not for client: use cidr"
	}
	return ""
}

// headerDetail judges a header's value, or the beginning of one. Values arrive
// without the blanks around them, and the gateway answers with 400 to a header
// that routing reads when it is long or not visible ASCII.
func headerDetail(s string, isPrefix bool) string {
	least := len(s) // of a value that fits
	if isPrefix && strings.HasSuffix(s, " ") {
		least++ // what keeps the blank from being the last byte
	}
	switch {
	case isBlank(s):
		return "is blank, and a blank header counts as absent: use present"
	case least > maxHeaderValue:
		return "must have at most 255 bytes, as the gateway refuses a longer header"
	case !isASCII(s):
		return "must be visible ASCII and spaces, as the gateway refuses any other header"
	case s[0] == ' ', !isPrefix && s[len(s)-1] == ' ':
		return "must not have blanks around it, for a header arrives without them"
	}
	return ""
}

// cookieDetail judges a cookie's value, or the beginning of one.
func cookieDetail(s string) string {
	if !isCookieText(s) {
		return `must be visible ASCII and spaces without ", ; and \, as the value of a cookie is`
	}
	return ""
}

// methodDetail judges a method, or the beginning of one.
func methodDetail(s string) string {
	if !isToken(s) {
		return "must be a method (RFC 9110 token)"
	}
	return ""
}

// pathDetail judges a path below the prefix, or the beginning of one, by the
// policy with which the gateway answers 400 (its package rawpath): what no path
// that it lets pass can be, or begin with.
func pathDetail(s string, isPrefix bool) string {
	if !strings.HasPrefix(s, "/") {
		return "must begin with /"
	}
	var seg pathSegment
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%' && isPrefix && isCutTriplet(s[i:]):
			i = len(s) // the rest of it, which need not be a dot or a slash, comes after the prefix
		case c == '%' && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])):
			return "must have two hexadecimal digits after each %"
		case c == '%':
			if detail := seg.triplet(strings.ToLower(s[i+1 : i+3])); detail != "" {
				return detail
			}
			i += 2
		case c == '#' || c == '?' || c == '\\' || c < 0x21 || c > 0x7e:
			return `must be visible ASCII without #, ? and \, as a path stands in a request`
		case c == '/':
			if seg.isDots() {
				return dotsDetail
			}
			seg = pathSegment{}
		default:
			seg.add(c)
		}
	}
	// A prefix may end in dots that are only the beginning of a segment's name.
	if seg.isDots() && (!isPrefix || seg.param) {
		return dotsDetail
	}
	return ""
}

const dotsDetail = "must not have the segment . or .., which the gateway refuses"

// isCutTriplet says whether s, which starts with a percent sign, is the beginning
// of a triplet and ends within it.
func isCutTriplet(s string) bool {
	return len(s) == 1 || len(s) == 2 && isHex(s[1])
}

// pathSegment is what was seen of a segment of a path.
type pathSegment struct {
	dots  int  // so far
	other bool // something else than dots came, before any parameter
	param bool // a ; came: the rest are parameters
}

func (p *pathSegment) add(c byte) {
	switch {
	case p.param:
	case c == ';':
		p.param = true
	case c == '.':
		p.dots++
	default:
		p.other = true
	}
}

// triplet takes the two hexadecimal digits of a triplet, in lower case.
func (p *pathSegment) triplet(code string) string {
	switch code {
	case "00", "5c":
		return "must not have %" + code
	case "2f": // readers that decode first take it for a slash
		if p.isDots() {
			return dotsDetail
		}
		*p = pathSegment{}
	case "2e":
		p.add('.')
	default:
		p.add('x') // an encoded ; separates nothing
	}
	return ""
}

func (p *pathSegment) isDots() bool { return !p.other && (p.dots == 1 || p.dots == 2) }
