package routing

// Compile turns a record into a Route. base is the wildcard record of the moment
// and gives labelRules and onUnavailable where the record has none, field by
// field; nil when there is none. A nil record is a service without a record: the
// route has its own instances alone, and the label rules of base. The error is a
// ValidationError of r, or of base wrapped so that it says so.
func Compile(r, base *Record, opts ...Option) (*Route, error) {
	if r == nil && base == nil {
		return nil, nil
	}
	rt := &Route{onUnavailable: OnUnavailableDefault, targets: noRecord}
	if r == nil {
		return rt, nil
	}
	if err := r.Validate(opts...).Err(); err != nil {
		return nil, err
	}
	rt.hasRecord, rt.service, rt.active = true, r.Service, *r.Active
	if r.OnUnavailable != nil {
		rt.onUnavailable = *r.OnUnavailable
	}
	if r.Variants == nil {
		rt.split = newSplit([]int64{1}, 0)
		return rt, nil
	}
	rt.targets = nil
	var weights []int64
	for i, v := range r.Variants {
		t := Target{Name: v.Name, Weight: *v.Weight}
		if v.Endpoint != nil {
			t.Endpoint = *v.Endpoint
			t.URL, _ = parseEndpoint(*v.Endpoint, optionsOf(opts))
		}
		if v.Name == *r.Default {
			rt.def = i
		}
		weights = append(weights, *v.Weight)
		rt.targets = append(rt.targets, t)
	}
	rt.split = newSplit(weights, rt.def)
	return rt, nil
}
