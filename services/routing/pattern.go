package routing

import (
	"errors"
	"net/netip"
	"regexp"
	"regexp/syntax"
)

// maxProgram is the longest program of a regex, in instructions. A short text can
// repeat itself into millions of them, and each costs time on every request.
const maxProgram = 5000

// maxPrograms is the size of all regexes of a record together, in the unit of
// programSize. What a record costs whoever compiles it is bounded by it.
const maxPrograms = 100_000

// maxSubject is the longest value that a regex is tried on, in bytes: the time that
// it takes grows with the value, which the client chooses.
const maxSubject = 4096

// pattern is a regex that was compiled, and its size in the unit of programSize.
type pattern struct {
	re   *regexp.Regexp
	size int
}

// compileRegex compiles an RE2 expression that must match the whole of a value.
// The error is the end of a sentence.
func compileRegex(s string) (pattern, error) {
	if s == "" || len(s) > maxValue {
		return pattern{}, errors.New("must have 1 to 1024 bytes")
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return pattern{}, errors.New("must be a regular expression in RE2 syntax: " + regexDetail(err))
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxProgram {
		return pattern{}, errors.New("must be a smaller regular expression: its repetitions make it too large")
	}
	// The text cannot be wrapped as it stands: an open \Q would quote the end of
	// the wrapping too. Of what was parsed, written out again, that cannot be said.
	re, err := regexp.Compile(`\A(?:` + tree.String() + `)\z`)
	if err != nil {
		return pattern{}, errors.New("must be a regular expression in RE2 syntax: " + regexDetail(err))
	}
	return pattern{re, programSize(prog)}, nil
}

// programSize is the number of instructions, those with large character classes
// counted by what the classes take.
func programSize(prog *syntax.Prog) int {
	const runesOfOne = 16
	size := 0
	for i := range prog.Inst {
		size += 1 + len(prog.Inst[i].Rune)/runesOfOne
	}
	return size
}

func regexDetail(err error) string {
	var s *syntax.Error
	if errors.As(err, &s) {
		return s.Code.String()
	}
	return "it cannot be compiled"
}

// compileCIDR reads an address range. Addresses are compared as IPv4 wherever
// they are, so a range of IPv4-mapped IPv6 addresses is one of IPv4 too.
func compileCIDR(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, errors.New("must be a range of addresses such as 10.0.0.0/8 or 2001:db8::/32")
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}
