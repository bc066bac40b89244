package routing

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
)

// Compile turns a record into a Route. base is the wildcard record of the moment,
// nil when there is none; it gives labelRules and onUnavailable where the record
// has none, field by field. A nil record is a service without one: the route has
// its own instances alone, and what base gives; with a nil base too it is nil. So
// is the record * itself. The error is a ValidationError, of the record before
// base, and wrapped when it is base's. Neither record is kept or changed.
func Compile(r, base *Record, opts ...Option) (*Route, error) {
	c := checker{options: optionsOf(opts)}
	if r != nil {
		if c.record(r); len(c.errs) > 0 {
			return nil, c.errs
		}
	}
	if base != nil {
		if base.Service != Wildcard {
			return nil, fmt.Errorf("the record %q is not the record *", base.Service)
		}
		if err := base.Validate(opts...).Err(); err != nil {
			return nil, fmt.Errorf("the record *: %w", err)
		}
	}
	if r == nil && base == nil {
		return nil, nil
	}
	b := builder{rt: &Route{targets: noRecord, onUnavailable: OnUnavailableDefault}, patterns: c.patterns}
	b.inherit(base)
	if r != nil {
		b.inherit(r)
	}
	if r != nil && r.Service != Wildcard {
		b.record(r, c.options)
	}
	b.finish()
	return b.rt, nil
}

// builder makes a Route of a record that is valid.
type builder struct {
	rt       *Route
	patterns map[string]pattern // its regexes by their text: to judge them is to compile them
}

// inherit takes what a record and the wildcard record have in common, over what
// is there.
func (b *builder) inherit(r *Record) {
	if r == nil {
		return
	}
	if r.OnUnavailable != nil {
		b.rt.onUnavailable = *r.OnUnavailable
	}
	if r.LabelRules == nil {
		return
	}
	b.rt.labels = nil
	for _, l := range r.LabelRules {
		f := LabelFilter{
			Header: http.CanonicalHeaderKey(l.Header), Label: l.Label,
			Mode: LabelMode(l.Mode), Fallback: LabelNone,
		}
		if l.Fallback != nil {
			f.Fallback = LabelFallback(*l.Fallback)
		}
		for _, s := range l.Guard {
			p, _ := compileCIDR(s) // the record is valid
			f.Guard = append(f.Guard, p)
		}
		b.rt.labels = append(b.rt.labels, f)
	}
}

// record takes what only a service's own record has.
func (b *builder) record(r *Record, o options) {
	b.rt.hasRecord, b.rt.active = true, *r.Active
	salt := ""
	if r.Sticky != nil {
		salt = value(r.Sticky.Salt)
	}
	b.rt.keyPrefix = r.Service + "\x00" + salt + "\x00"
	b.variants(r, o)
	for i := range r.Rules {
		b.rt.rules = append(b.rt.rules, b.rule(&r.Rules[i]))
	}
	if r.Sticky != nil {
		b.sticky(r.Sticky)
	}
}

// variants compiles where the variants live, and the split among them.
func (b *builder) variants(r *Record, o options) {
	if r.Variants == nil {
		b.rt.targets = []Target{{Name: DefaultName, Weight: 1}}
		b.rt.split = newSplit([]int64{1}, 0)
		return
	}
	weights := make([]int64, len(r.Variants))
	b.rt.targets = make([]Target, len(r.Variants))
	for i := range r.Variants {
		v, t := &r.Variants[i], &b.rt.targets[i]
		weights[i] = *v.Weight
		*t = Target{Name: v.Name, Weight: *v.Weight, Endpoint: value(v.Endpoint), Service: value(v.Service)}
		if v.Endpoint != nil {
			t.URL, _ = parseEndpoint(*v.Endpoint, o) // the record is valid
		}
		for _, key := range sortedKeys(v.Selector) {
			t.Selector = append(t.Selector, Label{Key: key, Value: v.Selector[key]})
		}
		if v.Name == *r.Default {
			b.rt.def = i
		}
	}
	b.except()
	b.rt.split = newSplit(weights, b.rt.def)
}

// except tells the variants without a place of their own which instances of the
// service belong to others.
func (b *builder) except() {
	var claimed [][]Label
	for i := range b.rt.targets {
		if t := &b.rt.targets[i]; t.Service == "" && t.Selector != nil {
			claimed = append(claimed, t.Selector)
		}
	}
	for i := range b.rt.targets {
		if t := &b.rt.targets[i]; t.isOwn() {
			t.Except = claimed
		}
	}
}

// rule compiles one rule.
func (b *builder) rule(u *Rule) rule {
	c := rule{name: u.Name}
	for i := range u.Match {
		c.matches = append(c.matches, b.matcher(&u.Match[i]))
	}
	if u.Variant != nil {
		c.variant, _ = b.rt.VariantNamed(*u.Variant)
		return c
	}
	weights := make([]int64, len(b.rt.targets))
	for i := range b.rt.targets {
		weights[i] = u.Weights[b.rt.targets[i].Name]
	}
	c.split = new(newSplit(weights, b.rt.def))
	return c
}

// matcher compiles one match.
func (b *builder) matcher(m *Match) matcher {
	var c matcher
	c.from, c.slot = b.source(m.On, value(m.Name))
	switch {
	case m.Present != nil:
		c.test, c.present = testPresent, *m.Present
	case m.Prefix != nil:
		c.test, c.prefix = testPrefix, *m.Prefix
	case m.Regex != nil:
		c.test = testRegex
		c.re = b.patterns[*m.Regex].re
	case m.CIDR != nil:
		p, _ := compileCIDR(*m.CIDR)
		c.test, c.ranges = testCIDR, []netip.Prefix{p}
	case m.On == OnClient:
		for _, s := range m.In {
			a := netip.MustParseAddr(s).Unmap()
			c.ranges = append(c.ranges, netip.PrefixFrom(a, a.BitLen()))
		}
	case len(m.In) <= fewValues:
		c.few = slices.Clone(m.In)
	default:
		c.many = make(map[string]struct{}, len(m.In))
		for _, s := range m.In {
			c.many[s] = struct{}{}
		}
	}
	return c
}

// source notes that a header, cookie or parameter is read, and returns its place.
// kind is a Match.On or a Sticky.By.
func (b *builder) source(kind, name string) (source, int) {
	switch kind {
	case OnHeader:
		return fromHeader, place(&b.rt.reads.headers, http.CanonicalHeaderKey(name))
	case OnCookie:
		return fromCookie, place(&b.rt.reads.cookies, name)
	case OnQuery:
		return fromQuery, place(&b.rt.reads.queries, name)
	case OnPath:
		return fromPath, 0
	case OnMethod:
		return fromMethod, 0
	case ByGatewayCookie:
		return fromGatewayCookie, place(&b.rt.reads.cookies, KeyCookie)
	default:
		return fromClient, 0
	}
}

// place returns where name is in the list, and puts it there when it is not.
func place(list *[]string, name string) int {
	if i := slices.Index(*list, name); i >= 0 {
		return i
	}
	*list = append(*list, name)
	return len(*list) - 1
}

// sticky compiles where the key comes from.
func (b *builder) sticky(s *Sticky) {
	k := &stickyKey{name: value(s.Name), missingDefault: value(s.Missing) == MissingDefault, maxAge: DefaultKeyMaxAge}
	k.from, k.slot = b.source(s.By, k.name)
	if k.from == fromGatewayCookie {
		k.name = KeyCookie
	}
	if s.MaxAge != nil {
		k.maxAge = *s.MaxAge
	}
	b.rt.sticky = k
}

// finish lists what answers depend on.
func (b *builder) finish() {
	headers := slices.Clone(b.rt.reads.headers)
	for i := range b.rt.labels {
		headers = append(headers, b.rt.labels[i].Header)
	}
	slices.Sort(headers)
	b.rt.headers = slices.Compact(headers)
	b.rt.vary = b.rt.headers
	if len(b.rt.reads.cookies) > 0 {
		b.rt.vary = append(slices.Clone(b.rt.headers), "Cookie")
		slices.Sort(b.rt.vary)
	}
}
