package routing

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"net/netip"
)

// maxKey is the longest key, in bytes; a longer one counts as missing.
const maxKey = 512

// DefaultKeyMaxAge is how long the gateway's cookie is kept when the record does
// not say, in seconds: 30 days.
const DefaultKeyMaxAge = 30 * 24 * 60 * 60

// stickyKey is a compiled Sticky: where the key comes from.
type stickyKey struct {
	from           source
	slot           int
	name           string // of the header, cookie or parameter; for Explain
	missingDefault bool
	maxAge         int64
}

// keyBuffer holds what is hashed: service, salt, key and variant between NULs.
type keyBuffer [maxName + 1 + maxText + 1 + maxKey + 1 + maxName]byte

// appendKey appends the request's key to b, and says whether there is one:
// missing, empty and too long are one case.
func (k *stickyKey) appendKey(b []byte, r *reading) ([]byte, bool) {
	var key string
	switch k.from {
	case fromHeader:
		if lines := r.header(k.slot); len(lines) > 0 && !isBlank(lines[0]) {
			key = lines[0]
		}
	case fromCookie:
		key = r.cookie(k.slot).text
	case fromQuery:
		key = r.query(k.slot).text
	case fromGatewayCookie:
		key = r.gatewayKey(k.slot)
	case fromClient:
		return appendClientKey(b, r.client())
	}
	if key == "" || len(key) > maxKey {
		return b, false
	}
	return append(b, key...), true
}

// appendClientKey appends an IPv4 address, or the /64 of an IPv6 one: within that
// a client changes its address at will. The form is netip's: 192.0.2.1, or
// 2001:db8::/64.
func appendClientKey(b []byte, a netip.Addr) ([]byte, bool) {
	if !a.IsValid() {
		return b, false
	}
	if a.Is4() {
		return a.AppendTo(b), true
	}
	p, err := a.Prefix(64)
	if err != nil {
		return b, false
	}
	return p.AppendTo(b), true
}

// choose returns the variant of s with the smallest score for the key at the end
// of b, which holds service NUL salt NUL key. Ties go to the earlier variant of
// the record. b must have room for a NUL and a name.
func (s *split) choose(b []byte, targets []Target) int {
	b = append(b, 0)
	best, smallest := 0, math.Inf(1)
	for i := range s.inOrder {
		sh := &s.inOrder[i]
		score := score(append(b, targets[sh.variant].Name...), sh.weight)
		if score < smallest {
			best, smallest = sh.variant, score
		}
	}
	return best
}

// score hashes a message, service NUL salt NUL key NUL variant, and scores it.
func score(message []byte, weight int64) float64 {
	sum := sha256.Sum256(message)
	return scoreOf(binary.BigEndian.Uint64(sum[:8])>>12, weight)
}

// scoreOf is the formula of the record: h is the first 52 bits of the hash, u lies
// strictly between 0 and 1, and the score is exponentially distributed with the
// weight as its rate, so that the smallest one falls to each variant in proportion
// to its weight. It never changes: it says which user is in which variant.
func scoreOf(h uint64, weight int64) float64 {
	u := (float64(h) + 0.5) / (1 << 52) // exact: h + ½ has 53 bits
	return -math.Log(u) / float64(weight)
}

// ByKey returns the variant that the record's weights and salt give to a key,
// whether the record is sticky or not: what Decide gives to a request with that
// key when no override and no rule comes first. A key that is empty or too long
// gives the default variant.
func (rt *Route) ByKey(key string) int {
	if rt == nil || !rt.hasRecord || !rt.active || key == "" || len(key) > maxKey {
		return rt.DefaultVariant()
	}
	var buf keyBuffer
	b := append(append(buf[:0], rt.keyPrefix...), key...)
	return rt.split.choose(b, rt.targets)
}

// KeyMaxAge returns for how long the gateway's cookie is kept, in seconds; 0 when
// the record does not stick by it.
func (rt *Route) KeyMaxAge() int64 {
	if rt == nil || rt.sticky == nil || rt.sticky.from != fromGatewayCookie {
		return 0
	}
	return rt.sticky.maxAge
}
