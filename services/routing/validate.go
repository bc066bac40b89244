package routing

// Validate returns everything that is wrong with the record, nil when it may be
// used. It never panics, whatever the record holds.
func (r *Record) Validate(opts ...Option) ValidationError {
	var errs ValidationError
	if r.Active == nil {
		errs = append(errs, FieldError{"/active", "is missing"})
	}
	return errs
}
