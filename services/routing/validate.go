package routing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits that record.md leaves to us; the others are in record.go.
const (
	maxMatches   = 16   // of a rule
	maxIn        = 1000 // strings of an in test
	maxValue     = 1024 // bytes of such a string, of a prefix and of a regex
	maxLabels    = 16   // of a selector
	maxGuards    = 64   // CIDRs of a guard
	maxText      = 255  // bytes of an owner, a salt, a label and the names that requests carry
	maxKeyMaxAge = 400 * 24 * 60 * 60
)

// Validate returns everything that is wrong with the record, in the order of the
// document; nil when it may be used. It never panics, whatever the record holds,
// and what it accepts, Compile accepts.
func (r *Record) Validate(opts ...Option) ValidationError {
	c := checker{options: optionsOf(opts)}
	c.record(r)
	return c.errs
}

// record checks a whole record.
func (c *checker) record(r *Record) {
	if r == nil {
		c.add("", "is missing")
		return
	}
	if r.Service == Wildcard {
		c.wildcard(r)
		return
	}
	c.name("/service", r.Service)
	c.active(r)
	known := c.variants(r)
	c.rules(r.Rules, known)
	c.sticky(r.Sticky)
	c.onUnavailable(r.OnUnavailable)
	c.labelRules(r.LabelRules)
	if r.Owner != nil && (*r.Owner == "" || len(*r.Owner) > maxText) {
		c.add("/owner", "must have 1 to 255 bytes")
	}
	if r.Ends != nil {
		if _, err := time.Parse(time.DateOnly, *r.Ends); err != nil {
			c.add("/ends", "must be a date, YYYY-MM-DD")
		}
	}
}

// checker collects what is wrong with a record.
type checker struct {
	options  options
	errs     ValidationError
	programs int                // size of the regexes so far
	patterns map[string]pattern // those that are fine, by their text
}

func (c *checker) add(pointer, detail string) {
	c.errs = append(c.errs, FieldError{Pointer: pointer, Detail: detail})
}

// at makes the JSON pointer of list element i, or of one of its members.
func at(list string, i int, member string) string {
	if member != "" {
		member = "/" + member
	}
	return list + "/" + strconv.Itoa(i) + member
}

// escape makes a JSON pointer token of a member name (RFC 6901, section 3).
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// name checks the name of a service, variant or rule.
func (c *checker) name(pointer, name string) bool {
	switch {
	case name == "":
		c.add(pointer, "is missing or empty")
	case !isName(name):
		c.add(pointer, nameDetail)
	default:
		return true
	}
	return false
}

// text checks a text of 1 to 255 bytes.
func (c *checker) text(pointer, s string) {
	switch {
	case strings.TrimSpace(s) == "":
		c.add(pointer, "is missing or blank")
	case len(s) > maxText:
		c.add(pointer, "must have at most 255 bytes")
	}
}

// oneOf checks a word out of a few.
func (c *checker) oneOf(pointer, word string, words ...string) bool {
	if slices.Contains(words, word) {
		return true
	}
	last := len(words) - 1
	detail := "must be " + strings.Join(words[:last], ", ") + " or " + words[last]
	if word == "" {
		detail = "is missing or empty; it " + detail
	}
	c.add(pointer, detail)
	return false
}

// wildcard checks the record "*", which holds only what services without a
// record can use.
func (c *checker) wildcard(r *Record) {
	c.active(r)
	for _, m := range []struct {
		member string
		there  bool
	}{
		{"variants", r.Variants != nil}, {"default", r.Default != nil}, {"rules", r.Rules != nil},
		{"sticky", r.Sticky != nil}, {"owner", r.Owner != nil}, {"ends", r.Ends != nil},
	} {
		if m.there {
			c.add("/"+m.member, "is not for the record *, which holds only labelRules and onUnavailable")
		}
	}
	c.onUnavailable(r.OnUnavailable)
	c.labelRules(r.LabelRules)
}

func (c *checker) active(r *Record) {
	if r.Active == nil {
		c.add("/active", "is missing")
	}
}

func (c *checker) onUnavailable(word *string) {
	if word != nil {
		c.oneOf("/onUnavailable", *word, OnUnavailableDefault, OnUnavailableFail)
	}
}

// weights checks each weight and their sum. pointer says where weight i stands;
// whole is where an error of all of them belongs.
func (c *checker) weights(whole string, weights []*int64, pointer func(i int) string) {
	sum, fine := int64(0), true
	for i, w := range weights {
		switch {
		case w == nil:
			c.add(pointer(i), "is missing")
			fine = false
		case *w < 0 || *w > MaxWeightSum:
			c.add(pointer(i), "must be an integer from 0 to 2147483647")
			fine = false
		default:
			sum += *w
		}
	}
	switch {
	case !fine:
	case sum == 0:
		c.add(whole, "must not have weights that are all 0")
	case sum > MaxWeightSum:
		c.add(whole, fmt.Sprintf("must have weights with a sum of at most %d, not %d", int64(MaxWeightSum), sum))
	}
}

// sortedKeys makes the order of errors independent of the map's.
func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
