package routing

import (
	"net/netip"
	"regexp"
	"strings"
)

// source says what a matcher or a key is read from.
type source uint8

const (
	fromHeader source = iota
	fromCookie
	fromQuery
	fromPath
	fromMethod
	fromClient
	fromGatewayCookie
)

// test says how a matcher looks at a value.
type test uint8

const (
	testIn test = iota
	testPrefix
	testRegex
	testCIDR
	testPresent
)

// fewValues is how many values of an in test are compared one by one; above, a
// map is faster.
const fewValues = 8

// matcher is a compiled Match.
type matcher struct {
	from    source
	test    test
	slot    int // of the header, cookie or parameter in reads
	present bool
	prefix  string
	few     []string            // the values of testIn, when they are few
	many    map[string]struct{} // else
	re      *regexp.Regexp
	ranges  []netip.Prefix // of testCIDR; of testIn on the client
}

// holds says whether the request meets the condition.
func (m *matcher) holds(r *reading) bool {
	switch m.from {
	case fromHeader:
		return m.holdsForLines(r.header(m.slot))
	case fromCookie:
		return m.holdsForField(r.cookie(m.slot))
	case fromQuery:
		return m.holdsForField(r.query(m.slot))
	case fromPath:
		return m.holdsForField(field{text: r.req.Path, there: true})
	case fromMethod:
		return m.holdsForField(field{text: r.req.Method, there: true})
	default:
		return m.holdsForClient(r.client())
	}
}

// holdsForLines is for a header: any of its lines will do, and a blank one is
// no line at all.
func (m *matcher) holdsForLines(lines []string) bool {
	there := false
	for _, line := range lines {
		if isBlank(line) {
			continue
		}
		if m.test != testPresent && m.holdsFor(line) {
			return true
		}
		there = true
	}
	return m.test == testPresent && m.present == there
}

// holdsForField is for a value that is there once or not at all.
func (m *matcher) holdsForField(f field) bool {
	if m.test == testPresent {
		return m.present == f.there
	}
	return f.there && m.holdsFor(f.text)
}

func (m *matcher) holdsForClient(a netip.Addr) bool {
	if m.test == testPresent {
		return m.present == a.IsValid()
	}
	for _, p := range m.ranges {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func (m *matcher) holdsFor(s string) bool {
	switch m.test {
	case testPrefix:
		return strings.HasPrefix(s, m.prefix)
	case testRegex:
		return len(s) <= maxSubject && m.re.MatchString(s)
	}
	for _, v := range m.few {
		if v == s {
			return true
		}
	}
	_, ok := m.many[s]
	return ok
}

// isBlank says whether a header line holds nothing but white space.
func isBlank(line string) bool {
	for i := range len(line) {
		if line[i] != ' ' && line[i] != '\t' {
			return false
		}
	}
	return true
}
