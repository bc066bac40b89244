package filter

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"specialroutes.example/services/override"
)

// overrideMost is how many overrides of one request are looked at.
const overrideMost = 16

// Reasons beside those of package override why an override is removed.
const (
	overrideTooMany = "too-many"
	overrideUnknown = "unknown-variant"
)

// overrides checks the signed wishes of a tester. A valid one for the service asked
// for is obeyed, a valid one for another travels on, and an invalid one is removed
// and named. Without keys none is valid.
func overrides(keys func() *override.Keys, now func() time.Time) func(*Exchange) error {
	return func(ex *Exchange) error {
		h := ex.Request.Header
		if len(h[RouteOverride]) == 0 && !strings.Contains(strings.Join(h["Cookie"], ";"), overrideCookie) {
			return nil
		}
		j := overrideJudge{ex: ex, now: now()}
		if keys != nil {
			j.keys = keys()
		}
		j.header(h)
		j.cookie(h)
		return nil
	}
}

// overrideJudge judges the overrides of one request.
type overrideJudge struct {
	ex   *Exchange
	keys *override.Keys
	now  time.Time
	seen int
}

// header keeps the valid overrides of the header.
func (j *overrideJudge) header(h http.Header) {
	var kept []string
	for _, line := range h[RouteOverride] {
		for token := range strings.SplitSeq(line, ",") {
			if token = trimSpace(token); token != "" && j.valid(token) {
				kept = append(kept, token)
			}
		}
	}
	if kept == nil {
		delete(h, RouteOverride)
		return
	}
	h[RouteOverride] = []string{strings.Join(kept, ", ")}
}

// cookie removes an invalid override from the cookies, and leaves all others as
// they are.
func (j *overrideJudge) cookie(h http.Header) {
	var lines []string
	for _, line := range h["Cookie"] {
		pairs := strings.Split(line, ";")
		left := slices.DeleteFunc(slices.Clone(pairs), func(pair string) bool {
			name, token, ok := strings.Cut(trimSpace(pair), "=")
			return ok && name == overrideCookie && !j.valid(token)
		})
		if len(left) != len(pairs) {
			line = trimSpace(strings.Join(left, ";"))
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	if lines == nil {
		delete(h, "Cookie")
		return
	}
	h["Cookie"] = lines
}

// valid judges one override and takes note of it. The first for a service wins,
// and the header comes before the cookie.
func (j *overrideJudge) valid(token string) bool {
	if j.seen++; j.seen > overrideMost {
		return j.invalid(overrideTooMany)
	}
	if j.keys == nil {
		return j.invalid(override.ErrUnknownKey.Error())
	}
	t, err := j.keys.Verify(token, j.now)
	if err != nil {
		return j.invalid(err.Error())
	}
	if t.Service != j.ex.Route.Service {
		return true
	}
	if _, ok := j.ex.Record.VariantNamed(t.Variant); !ok {
		return j.invalid(overrideUnknown)
	}
	if j.ex.Override == "" {
		j.ex.Override = t.Variant
	}
	return true
}

// invalid names the first override that is removed.
func (j *overrideJudge) invalid(why string) bool {
	if j.ex.Entry.OverrideInvalid == "" {
		j.ex.Entry.OverrideInvalid = why
	}
	return false
}

// OverrideUnavailable is the refusal of a request whose override asks for a
// variant that cannot be reached: an answer of another one would be a lie.
func OverrideUnavailable(ex *Exchange) *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Code: "override_unavailable",
		Detail:  "the variant that the override asks for cannot be reached",
		Members: unavailability(ex)}
}
