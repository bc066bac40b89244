package routing

// DefaultName is the name of the one variant of a service that has no record, or
// a record without variants.
const DefaultName = "default"

// Target is where a variant lives. It is immutable.
type Target struct {
	Name     string
	Weight   int64
	Endpoint string    // as written in the record; "": instances of the registry
	URL      *BaseURL  // Endpoint taken apart; nil without one
	Service  string    // another registry name; "": the requested service itself
	Selector []Label   // labels that its instances must carry, by key
	Except   [][]Label // selectors whose instances are not its own (only without a place)
}

// Route is a compiled record. It is immutable and safe for concurrent use. All
// methods may be called on a nil *Route, which is a service without a record and
// without a wildcard record: one variant, the service's own instances.
type Route struct {
	hasRecord     bool
	active        bool
	targets       []Target
	def           int // index of the default variant
	split         split
	rules         []rule
	sticky        *stickyKey
	keyPrefix     string // what is hashed before a key: service NUL salt NUL
	reads         reads
	onUnavailable string
	labels        []LabelFilter
	headers       []string
	vary          []string
}

// rule is a compiled Rule.
type rule struct {
	name    string
	matches []matcher
	variant int    // unless split is there
	split   *split // nil: variant
}

// firstFailing returns the index of the first match that does not hold, -1 when
// all do.
func (u *rule) firstFailing(r *reading) int {
	for i := range u.matches {
		if !u.matches[i].holds(r) {
			return i
		}
	}
	return -1
}

var noRecord = []Target{{Name: DefaultName}}

// Variant returns the i-th variant's place. It panics when i is not an index
// that Decide or DefaultVariant returned.
func (rt *Route) Variant(i int) *Target {
	if rt == nil {
		return &noRecord[i]
	}
	return &rt.targets[i]
}

// Variants returns how many variants there are, at least one.
func (rt *Route) Variants() int {
	if rt == nil {
		return 1
	}
	return len(rt.targets)
}

// VariantNamed returns the index of the variant of that name, false when there
// is none.
func (rt *Route) VariantNamed(name string) (int, bool) {
	for i := range rt.Variants() {
		if rt.Variant(i).Name == name {
			return i, true
		}
	}
	return 0, false
}

// DefaultVariant returns the index of the default variant.
func (rt *Route) DefaultVariant() int {
	if rt == nil {
		return 0
	}
	return rt.def
}

// OnUnavailable returns OnUnavailableDefault or OnUnavailableFail: the record's,
// else the wildcard record's, else the first.
func (rt *Route) OnUnavailable() string {
	if rt == nil {
		return OnUnavailableDefault
	}
	return rt.onUnavailable
}

// LabelRules returns the label rules in their order: the record's, else those of
// the wildcard record. They hold whether the record is active or not. Do not
// change the slice.
func (rt *Route) LabelRules() []LabelFilter {
	if rt == nil {
		return nil
	}
	return rt.labels
}

// Headers returns the headers that rules, sticky and label rules read, in
// canonical form, sorted and each once; Cookie is not among them. Do not change
// the slice.
func (rt *Route) Headers() []string {
	if rt == nil {
		return nil
	}
	return rt.headers
}

// Vary returns what an answer of any variant depends on: Headers, and Cookie
// when a cookie is read. It is empty when answers need no Vary of ours. Do not
// change the slice.
func (rt *Route) Vary() []string {
	if rt == nil {
		return nil
	}
	return rt.vary
}
