// Package accesslog writes one JSON line per request. A request hands its Entry
// over and goes on: lines wait in a bounded buffer for the one goroutine that
// writes them, and are dropped and counted when too many wait.
package accesslog

import (
	"net/netip"
	"time"
)

// Entry is what is known of one request when its answer has ended. Strings may
// come from the client as they are; the writer escapes and caps them. It is only
// read during the call that it is handed to, so the caller may use it again
// afterwards.
type Entry struct {
	Time                time.Time // when the request's head had been read
	CorrelationID       string
	CorrelationReplaced bool // the client's own was missing or not usable

	Method string
	Host   string
	Path   string // raw, as the client sent it, without the query

	Route    string // the table's entry, host and prefix; "" when none matched
	Service  string // "" when no route matched
	Variant  string
	Reason   string // no-record, inactive, override, rule:NAME, sticky or draw
	Fallback string // what gave way, "wanted=new; reason=connect"; "" is nothing
	Instance string // ID of the instance, or the endpoint's authority

	Status   int   // of the answer; 499 when the client left before it
	BytesIn  int64 // of the request's body
	BytesOut int64 // of the answer's body

	Duration time.Duration // from Time to the last byte of the answer
	Upstream time.Duration // the part of it that was spent waiting for upstreams
	Retries  int           // attempts after the first

	Client netip.Addr // the right-most untrusted address

	Code            string // the problem code of an answer of our own, or why one broke off; "" of others
	OverrideInvalid string // why an override was removed, "" when none was
}
