package api

import (
	"net/http"
	"regexp"
	"strings"
)

// conditions are the If-Match and If-None-Match of a request (RFC 9110, 13.1).
type conditions struct {
	match, noneMatch *tagList // nil: not given
}

// tagList is the value of such a header.
type tagList struct {
	any  bool // "*"
	tags []tag
}

type tag struct {
	weak   bool
	opaque string // with its quotation marks
}

var errPrecondition = refuse(http.StatusPreconditionFailed, "precondition_failed",
	"What is stored is not in the state that If-Match or If-None-Match asks for. Nothing was changed.")

func readConditions(h http.Header) (conditions, error) {
	match, err := readTags(h, "If-Match")
	if err != nil {
		return conditions{}, err
	}
	noneMatch, err := readTags(h, "If-None-Match")
	return conditions{match: match, noneMatch: noneMatch}, err
}

// tagPattern is an entity tag and what follows it up to the next one. Its quoted
// part may hold commas.
var tagPattern = regexp.MustCompile(`^(W/)?("[\x21\x23-\x7E]*")[ \t]*(?:,[ \t,]*|$)`)

func readTags(h http.Header, name string) (*tagList, error) {
	lines := h.Values(name)
	if lines == nil {
		return nil, nil //nolint:nilnil // absent is neither a list nor a mistake
	}
	rest := strings.Trim(strings.Join(lines, ","), " \t,")
	if rest == "*" {
		return &tagList{any: true}, nil
	}
	list := new(tagList)
	for rest != "" {
		m := tagPattern.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		list.tags = append(list.tags, tag{weak: m[1] != "", opaque: m[2]})
		rest = rest[len(m[0]):]
	}
	if rest != "" || len(list.tags) == 0 {
		return nil, badParameter(name, `want * or entity tags with their quotation marks, as "42.k3f9"`)
	}
	return list, nil
}

// check says whether a change may be made to what has that entity tag, "" when it is
// not there.
func (c conditions) check(before string) error {
	if c.match != nil && !c.match.holds(before, false) || c.noneMatch != nil && c.noneMatch.holds(before, true) {
		return errPrecondition
	}
	return nil
}

// notModified says whether a reader has what has that entity tag already.
func (c conditions) notModified(etag string) bool {
	return c.noneMatch != nil && c.noneMatch.holds(etag, true)
}

// holds says whether an entity tag is one of the list. Weak tags count only where the
// comparison is weak.
func (l *tagList) holds(etag string, weak bool) bool {
	if etag == "" {
		return false
	}
	if l.any {
		return true
	}
	for _, t := range l.tags {
		if t.opaque == etag && (weak || !t.weak) {
			return true
		}
	}
	return false
}
