package api

import (
	"errors"
	"net/http"
	"net/netip"
	"regexp"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

// question is what POST /v1/explain takes.
type question struct {
	Service string          `json:"service"`
	Record  *routing.Record `json:"record"`
	Request questioned      `json:"request"`
}

// questioned is the request that is asked about.
type questioned struct {
	Method   *string             `json:"method"`
	Path     *string             `json:"path"`
	Query    string              `json:"query"`
	Headers  map[string][]string `json:"headers"`
	Client   *string             `json:"client"`
	Override string              `json:"override"`
	Draw     *int64              `json:"draw"`
}

// explanation is the answer.
type explanation struct {
	Service  string `json:"service"`
	Revision int64  `json:"revision,omitzero"`
	routing.Explanation
	NeedsKey bool             `json:"needsKey,omitzero"`
	Target   target           `json:"target"`
	Refused  *routing.Refused `json:"refused,omitzero"`
}

type target struct {
	Endpoint string            `json:"endpoint,omitzero"`
	Service  string            `json:"service,omitzero"`
	Selector map[string]string `json:"selector,omitempty"`
}

func (a *api) explain(c *gin.Context) error {
	var q question
	if err := a.readBody(c, &q); err != nil {
		return err
	}
	request, err := q.check(a.rules)
	if err != nil {
		return err
	}
	if err := checkCovers(c, q.Service); err != nil {
		return err
	}
	answer := explanation{Service: q.Service}
	record := q.Record
	if record == nil {
		stored, err := a.usableOrNone(c, q.Service)
		if err != nil {
			return err
		}
		record, answer.Revision = stored.Record, stored.Revision
	}
	base, err := a.usableOrNone(c, routing.Wildcard)
	if err != nil {
		return err
	}
	route, err := routing.Compile(record, base.Record, asStored)
	if err != nil {
		return err
	}
	if answer.Refused = route.Refuse(request); answer.Refused != nil {
		answer.Explanation = routing.ExplainRefused(answer.Refused)
		return writeJSON(c, http.StatusOK, answer)
	}
	d := drawing{given: q.Request.Draw, draw: a.Draw}
	answer.Explanation = route.Explain(request, d.next)
	if d.err != nil {
		return d.err
	}
	answer.NeedsKey = answer.Decision.NeedsKey
	answer.Target = targetOf(route.Variant(answer.Decision.Variant), q.Service)
	return writeJSON(c, http.StatusOK, answer)
}

// usableOrNone returns a service's record, without one an empty one.
func (a *api) usableOrNone(c *gin.Context, service string) (store.Stored, error) {
	stored, err := a.Store.Get(c.Request.Context(), service)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Stored{}, nil
	case err == nil && stored.Broken != "":
		return store.Stored{}, errBroken(&stored)
	}
	return stored, err
}

func targetOf(t *routing.Target, service string) target {
	out := target{Endpoint: t.Endpoint}
	if t.Service != service {
		out.Service = t.Service
	}
	for _, l := range t.Selector {
		if out.Selector == nil {
			out.Selector = map[string]string{}
		}
		out.Selector[l.Key] = l.Value
	}
	return out
}

// drawing gives the number that is drawn: the one in the question, or a random one.
type drawing struct {
	given *int64
	draw  func(sum int64) int64
	err   error
}

func (d *drawing) next(sum int64) int64 {
	if d.given == nil {
		return d.draw(sum)
	}
	if *d.given > sum {
		d.err = routing.ValidationError{{Pointer: "/request/draw", Detail: "is above the sum of the weights"}}
		return sum
	}
	return *d.given
}

var (
	tokenPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	pathPattern  = regexp.MustCompile(`^/[\x21-\x7E]*$`)
	queryPattern = regexp.MustCompile(`^[\x21-\x7E]*$`)
	valuePattern = regexp.MustCompile(`^[\t\x20-\x7E\x80-\x{10FFFF}]*$`)
)

// check finds all mistakes of a question, and returns its request.
func (q *question) check(rules []routing.Option) (*routing.Request, error) {
	var mistakes routing.ValidationError
	add := func(pointer, detail string) {
		mistakes = append(mistakes, routing.FieldError{Pointer: pointer, Detail: detail})
	}
	if q.Service != routing.Wildcard && !namePattern.MatchString(q.Service) {
		add("/service", nameRules)
	}
	if q.Record != nil {
		for _, m := range checkOf(q.Record, q.Service, "is another service than the question's", rules) {
			add("/record"+m.Pointer, m.Detail)
		}
	}
	request := q.Request.read(add)
	return request, mistakes.Err()
}

func (q *questioned) read(add func(pointer, detail string)) *routing.Request {
	r := &routing.Request{Method: http.MethodGet, Path: "/", RawQuery: q.Query, Header: http.Header{}, Override: q.Override}
	if q.Method != nil {
		r.Method = *q.Method
	}
	if q.Path != nil {
		r.Path = *q.Path
	}
	if !tokenPattern.MatchString(r.Method) {
		add("/request/method", "is not a method")
	}
	if !pathPattern.MatchString(r.Path) {
		add("/request/path", "must begin with / and be visible ASCII, as it stands in a request")
	}
	if !queryPattern.MatchString(q.Query) {
		add("/request/query", "must be visible ASCII, as it stands in a request")
	}
	for name, lines := range q.Headers {
		pointer := "/request/headers" + pointerTo(name)
		if !tokenPattern.MatchString(name) {
			add(pointer, "is not the name of a header")
		}
		for _, line := range lines {
			if !valuePattern.MatchString(line) {
				add(pointer, "has a control character")
			}
			r.Header.Add(name, line)
		}
	}
	if q.Client != nil {
		var err error
		if r.Client, err = netip.ParseAddr(*q.Client); err != nil {
			add("/request/client", "is not an IP address")
		}
	}
	if q.Draw != nil && *q.Draw < 1 {
		add("/request/draw", "must be at least 1")
	}
	return r
}
