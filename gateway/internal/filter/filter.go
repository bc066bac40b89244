// Package filter holds the steps around forwarding, one small file each, and the
// exchange that they share. Pre filters judge and clean a request, route filters
// decide where it goes, post filters finish its answer. They see plain headers
// and never know how the bytes are moved.
package filter

import (
	"cmp"
	"slices"
)

// Kind says when a filter runs.
type Kind uint8

// The kinds, in the order in which they run.
const (
	KindPre   Kind = iota // on the request, before anything is decided
	KindRoute             // on the request, decides and prepares what goes upstream
	KindPost              // on the head of the answer, ours or the upstream's
)

// String returns the kind's name.
func (k Kind) String() string { return [...]string{"pre", "route", "post"}[k] }

// Filter is one step. Within a kind filters run in ascending order.
type Filter struct {
	Name  string
	Kind  Kind
	Order int

	request func(*Exchange) error // of pre and route filters
	answer  func(*Exchange)       // of post filters
}

// Pre returns a filter that runs before the decision. An error that is a *Refusal
// ends the request with that answer.
func Pre(order int, name string, apply func(*Exchange) error) Filter {
	return Filter{Name: name, Kind: KindPre, Order: order, request: apply}
}

// Route returns a filter that decides or prepares what goes upstream. An error
// ends the request as in Pre.
func Route(order int, name string, apply func(*Exchange) error) Filter {
	return Filter{Name: name, Kind: KindRoute, Order: order, request: apply}
}

// Post returns a filter that works on the head of an answer. It cannot fail: the
// answer is there and must go out.
func Post(order int, name string, apply func(*Exchange)) Filter {
	return Filter{Name: name, Kind: KindPost, Order: order, answer: apply}
}

// Chain is filters in their order. It is immutable and safe for concurrent use.
type Chain struct {
	filters []Filter
	request []func(*Exchange) error
	answer  []func(*Exchange)
}

// NewChain puts filters in order: by kind, then by Order, then as given.
func NewChain(filters ...Filter) *Chain {
	c := &Chain{filters: slices.Clone(filters)}
	slices.SortStableFunc(c.filters, func(a, b Filter) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Order, b.Order))
	})
	for _, f := range c.filters {
		if f.Kind == KindPost {
			c.answer = append(c.answer, f.answer)
		} else {
			c.request = append(c.request, f.request)
		}
	}
	return c
}

// Filters returns the filters in the order in which they run.
func (c *Chain) Filters() []Filter { return slices.Clone(c.filters) }

// Request runs the pre and the route filters. The first error ends it.
func (c *Chain) Request(ex *Exchange) error {
	for _, apply := range c.request {
		if err := apply(ex); err != nil {
			return err
		}
	}
	return nil
}

// Answer runs the post filters on ex.Answer.
func (c *Chain) Answer(ex *Exchange) {
	for _, apply := range c.answer {
		apply(ex)
	}
}
