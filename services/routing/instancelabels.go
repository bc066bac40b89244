package routing

import (
	"maps"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what an operator says about an instance's labels.
const (
	MaxInstanceID     = 255 // bytes of an instance's ID
	MaxInstanceLabels = 64  // labels that are set or hidden
	MaxLabelName      = 63  // bytes
	MaxLabelValue     = 255 // bytes

	// MaxLabelsFor is how far off the end may be: what steers a running instance by
	// hand must not be forgotten.
	MaxLabelsFor = 30 * 24 * time.Hour
)

// LabelChanges are changes of an instance's labels by their name: a text sets or
// replaces the label, nil, which is null in JSON, hides it.
type LabelChanges map[string]*string

// NullValues lets strictjson.Decode take null for a value.
func (LabelChanges) NullValues() {}

// Apply returns the labels with the changes made. The map it is given stays as it
// is; it may be nil.
func (c LabelChanges) Apply(labels map[string]string) map[string]string {
	changed := maps.Clone(labels)
	if changed == nil {
		changed = make(map[string]string, len(c))
	}
	for name, value := range c {
		if value == nil {
			delete(changed, name)
		} else {
			changed[name] = *value
		}
	}
	return changed
}

// InstanceLabels is what an operator says about the labels of one instance, until
// it ends: the document of PUT /v1/instances/{service}/{id}/labels.
type InstanceLabels struct {
	Labels LabelChanges `json:"labels,omitzero"`
	Ends   *string      `json:"ends,omitzero"` // a time by RFC 3339
}

// EndsAt returns the moment from which on the changes no longer hold, in UTC; the
// zero time when Ends is none.
func (l *InstanceLabels) EndsAt() time.Time {
	if l.Ends == nil {
		return time.Time{}
	}
	var t time.Time
	// T and Z may be in lower case (RFC 3339, section 5.6), which package time does not take.
	if err := t.UnmarshalText([]byte(strings.ToUpper(*l.Ends))); err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// Validate returns everything that is wrong with the form of the document; nil when
// it may be used until it ends. It reads no clock: see ValidateNew.
func (l *InstanceLabels) Validate() ValidationError { return l.validate(time.Time{}) }

// ValidateNew is Validate for a document that is to be stored at a moment: its end
// must be after it, by at most MaxLabelsFor, and its values must be ones that a header
// can have, for a rule meets no others.
func (l *InstanceLabels) ValidateNew(now time.Time) ValidationError { return l.validate(now) }

func (l *InstanceLabels) validate(now time.Time) ValidationError {
	var c checker
	c.labelChanges("/labels", l.Labels, !now.IsZero())
	switch ends := l.EndsAt(); {
	case l.Ends == nil:
		c.add("/ends", "is missing: changes of labels end, after 30 days at most")
	case ends.IsZero():
		c.add("/ends", "must be a time by RFC 3339, as 2026-12-20T12:00:00Z")
	case now.IsZero():
	case !ends.After(now):
		c.add("/ends", "must be in the future")
	case ends.Sub(now) > MaxLabelsFor:
		c.add("/ends", "must be at most 30 days from now")
	}
	return c.errs
}

// Validate returns everything that is wrong with the changes, in the order of their
// names, with pointers that begin with /labels.
func (c LabelChanges) Validate() ValidationError {
	var check checker
	check.labelChanges("/labels", c, false)
	return check.errs
}

// labelChanges finds mistakes. New changes have values that a request can ask for as well;
// those that are stored already stay usable.
func (c *checker) labelChanges(pointer string, changes LabelChanges, isNew bool) {
	switch {
	case changes == nil:
		c.add(pointer, "is missing")
	case len(changes) == 0:
		c.add(pointer, "must hold 1 to 64 labels; delete the document to have none")
	case len(changes) > MaxInstanceLabels:
		c.add(pointer, "must hold 1 to 64 labels")
	}
	for _, name := range sortedKeys(changes) {
		where := pointer + "/" + escape(name)
		if detail := labelNameFault(name); detail != "" {
			c.add(where, detail)
		}
		if value := changes[name]; value != nil {
			detail := labelValueFault(*value)
			if detail == "" && isNew {
				detail = newLabelFault(*value)
			}
			if detail != "" {
				c.add(where, detail)
			}
		}
	}
}

// labelNameFault says what is wrong with the name of an instance's label, "" for
// nothing.
func labelNameFault(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "must have a name that is not blank"
	case len(name) > MaxLabelName:
		return "must have a name of at most 63 bytes"
	case !isPlainText(name):
		return "must have a name without control characters"
	case strings.Contains(name, "="):
		return `must have a name without "="`
	}
	return ""
}

// labelValueFault is labelNameFault of a value. A blank one is allowed: label rules
// take it for absent, as they take one that is registered.
func labelValueFault(value string) string {
	switch {
	case len(value) > MaxLabelValue:
		return "must have at most 255 bytes"
	case !isPlainText(value):
		return "must have no control characters"
	}
	return ""
}

// newLabelFault says why no request could ask for a value: label rules compare it with a
// header, byte by byte.
func newLabelFault(value string) string {
	if isBlank(value) {
		return "is blank, and a blank label counts as absent: hide it with null"
	}
	return headerDetail(value, false)
}

// isPlainText says whether s is UTF-8 without control characters.
func isPlainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// ValidInstance reports whether s can be the ID of an instance whose labels an
// operator changes: 1 to 255 bytes of visible ASCII.
func ValidInstance(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= MaxInstanceID
}
