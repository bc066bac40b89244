package filter

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// note returns filters that write their names down.
func note(to *[]string) (pre, route func(int, string) Filter, post func(int, string) Filter) {
	request := func(name string) func(*Exchange) error {
		return func(*Exchange) error { *to = append(*to, name); return nil }
	}
	return func(order int, name string) Filter { return Pre(order, name, request(name)) },
		func(order int, name string) Filter { return Route(order, name, request(name)) },
		func(order int, name string) Filter {
			return Post(order, name, func(*Exchange) { *to = append(*to, name) })
		}
}

func TestFiltersRunByKindAndOrder(t *testing.T) {
	t.Parallel()
	var ran []string
	pre, route, post := note(&ran)
	c := NewChain(post(2, "d"), route(1, "c"), post(1, "e"), pre(9, "b"), pre(-1, "a"), pre(9, "b2"))
	if err := c.Request(nil); err != nil {
		t.Fatal(err)
	}
	c.Answer(nil)
	if want := []string{"a", "b", "b2", "c", "e", "d"}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}

func TestAnErrorEndsTheRequestFilters(t *testing.T) {
	t.Parallel()
	var ran []string
	pre, route, post := note(&ran)
	refusal := &Refusal{Status: 400, Code: "x"}
	c := NewChain(pre(1, "a"), Pre(2, "no", func(*Exchange) error { return refusal }), route(1, "c"), post(1, "d"))
	if err := c.Request(nil); !errors.Is(err, refusal) {
		t.Errorf("Request = %v, want the refusal", err)
	}
	c.Answer(nil)
	if want := []string{"a", "d"}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}

// The order is a matter of safety: what it must be is said in list.go's files.
func TestStandard(t *testing.T) {
	t.Parallel()
	var got []string
	for _, f := range Standard(Settings{}).Filters() {
		got = append(got, fmt.Sprintf("%s %d %s", f.Kind, f.Order, f.Name))
	}
	want := []string{
		"pre 0 hop-by-hop", "pre 1 correlation", "pre 2 target", "pre 3 match", "pre 4 limits", "pre 4 expect", "pre 5 client",
		"pre 6 owned", "pre 7 client-labels", "pre 8 override",
		"route 1 special-route", "route 2 choose", "route 3 sensitive", "route 4 forwarded", "route 5 route-headers",
		"post 0 sensitive", "post 1 response", "post 2 expose", "post 3 vary", "post 4 override-private",
		"post 5 sticky-cookie",
	}
	if !slices.Equal(got, want) {
		t.Errorf("filters:\n%q\nwant\n%q", got, want)
	}
}

func TestRandomKey(t *testing.T) {
	t.Parallel()
	a, b := RandomKey(), RandomKey()
	if len(a) != 22 || a == b {
		t.Errorf("keys %q and %q, want two of 22 characters", a, b)
	}
}

func TestPlainName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"X-Forwarded-For": "X-Forwarded-For", "X_forwarded_for": "X-Forwarded-For", "X.Real.Ip": "X-Real-Ip",
		"X-Forwarded_for": "X-Forwarded-For", "Content_Length": "Content-Length", "Dnt": "Dnt", "X~A": "X-A",
	} {
		if got := plainName(name); got != want {
			t.Errorf("plainName(%q) = %q, want %q", name, got, want)
		}
	}
}
