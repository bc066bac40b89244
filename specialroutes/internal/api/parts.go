package api

import (
	"maps"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

func (a *api) putWeights(c *gin.Context) error {
	weights := map[string]int64{}
	w, err := a.beginWrite(c, routeName, &weights)
	if err != nil {
		return err
	}
	return a.change(c, w, func(before *store.Stored) (*routing.Record, error) {
		record, err := usable(before)
		if err != nil {
			return nil, err
		}
		return withWeights(record, weights, a.rules)
	})
}

// withWeights returns the record with other weights. All its variants are named, so
// that the sum is what whoever wrote the weights thinks it is.
func withWeights(r *routing.Record, weights map[string]int64, rules []routing.Option) (*routing.Record, error) {
	var mistakes routing.ValidationError
	add := func(name, detail string) {
		mistakes = append(mistakes, routing.FieldError{Pointer: pointerTo(name), Detail: detail})
	}
	after := r.Clone()
	unknown := maps.Clone(weights)
	var sum int64
	for i := range after.Variants {
		name := after.Variants[i].Name
		weight, ok := weights[name]
		delete(unknown, name)
		switch {
		case !ok:
			add(name, "is missing: the record has a variant of this name")
		case weight < 0 || weight > routing.MaxWeightSum:
			add(name, "must be from 0 to 2147483647")
		default:
			sum += weight
			after.Variants[i].Weight = &weight
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		add(name, "the record has no variant of this name")
	}
	if mistakes == nil && (sum == 0 || sum > routing.MaxWeightSum) {
		mistakes = append(mistakes, routing.FieldError{Detail: "the sum of all weights must be from 1 to 2147483647"})
	}
	if mistakes != nil {
		return nil, mistakes
	}
	return after, after.Validate(rules...).Err()
}

// pointerTo is the JSON pointer of a member.
func pointerTo(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// activeBody is what PUT …/active takes.
type activeBody struct {
	Active *bool `json:"active"`
}

func (a *api) putActive(c *gin.Context) error {
	var body activeBody
	w, err := a.beginWrite(c, routeName, &body)
	if err != nil {
		return err
	}
	if body.Active == nil {
		return missing("/active")
	}
	return a.change(c, w, func(before *store.Stored) (*routing.Record, error) {
		record, err := usable(before)
		if err != nil {
			return nil, err
		}
		after := record.Clone()
		after.Active = body.Active
		if !*body.Active {
			return after, nil // whatever it is, it can be switched off
		}
		return after, after.Validate(a.rules...).Err()
	})
}
