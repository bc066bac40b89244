package routing

import (
	"fmt"
	"strings"
)

// variants checks variants and default, and returns the names that rules may use.
func (c *checker) variants(r *Record) map[string]bool {
	known := map[string]bool{}
	if r.Variants == nil {
		known[DefaultName] = true // the one variant that there is
		if r.Default != nil {
			c.add("/variants", "is missing, though default is there: give both or neither")
		}
		return known
	}
	if len(r.Variants) == 0 || len(r.Variants) > MaxVariants {
		c.add("/variants", "must hold 1 to 16 variants")
	}
	list := r.Variants[:min(len(r.Variants), MaxVariants)]
	for i := range list {
		v := &list[i]
		if c.name(at("/variants", i, "name"), v.Name) && known[v.Name] {
			c.add(at("/variants", i, "name"), "is the name of an earlier variant")
		}
		known[v.Name] = true
		c.place(at("/variants", i, ""), r.Service, v)
	}
	weights := make([]*int64, len(list))
	for i := range list {
		weights[i] = list[i].Weight
	}
	if len(list) > 0 {
		c.weights("/variants", weights, func(i int) string { return at("/variants", i, "weight") })
	}
	c.overlaps(list)
	switch {
	case r.Default == nil:
		c.add("/default", "is missing, though variants is there: give both or neither")
	case !known[*r.Default]:
		c.add("/default", "is not the name of a variant")
	}
	return known
}

// place checks where a variant lives.
func (c *checker) place(pointer, service string, v *Variant) {
	if v.Endpoint != nil {
		if _, err := parseEndpoint(*v.Endpoint, c.options); err != nil {
			c.add(pointer+"/endpoint", err.Error())
		}
		if v.Service != nil || v.Selector != nil {
			c.add(pointer+"/endpoint", "must stand alone, without service and selector")
		}
	}
	if v.Service != nil && c.name(pointer+"/service", *v.Service) && *v.Service == service {
		c.add(pointer+"/service", "is the record's own service; leave it out")
	}
	if v.Selector == nil {
		return
	}
	if len(v.Selector) == 0 || len(v.Selector) > maxLabels {
		c.add(pointer+"/selector", "must hold 1 to 16 labels")
		return
	}
	for _, key := range sortedKeys(v.Selector) {
		where := pointer + "/selector/" + escape(key)
		if strings.TrimSpace(key) == "" || len(key) > maxText || !isASCII(key) {
			c.add(where, "must be a label of 1 to 255 ASCII characters")
		}
		c.text(where, v.Selector[key])
	}
}

// overlaps refuses two selectors that could claim the same instance: of one
// service, and with no label for which they want different values.
func (c *checker) overlaps(list []Variant) {
	for i := range list {
		for j := range i {
			if selectorsOverlap(&list[j], &list[i]) {
				c.add(at("/variants", i, "selector"), fmt.Sprintf(
					"could claim the same instances as that of variants/%d: no label has different values in both", j))
			}
		}
	}
}

func selectorsOverlap(a, b *Variant) bool {
	if len(a.Selector) == 0 || len(b.Selector) == 0 || value(a.Service) != value(b.Service) {
		return false
	}
	for key, want := range a.Selector {
		if other, ok := b.Selector[key]; ok && other != want {
			return false
		}
	}
	return true
}

// value is *p, or "" for an absent member.
func value(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// isASCII says whether s has only visible ASCII characters and spaces.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
