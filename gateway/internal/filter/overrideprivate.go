package filter

import "specialroutes.example/services/routing"

// overridePrivate keeps an answer that an override decided from shared caches: it is
// its tester's alone. A Vary would not do, for the override is not in every request.
func overridePrivate(ex *Exchange) {
	if ex.Decision.Kind == routing.KindOverride {
		makePrivate(ex.Answer)
	}
}
