// Package override makes and checks the signed wishes of testers: a token asks for
// one variant of one service until it expires. The gateway checks what a request
// carries, the command line makes them, both with this code and a file of keys that
// they share.
//
//	v1.<service>.<variant>.<expiry, Unix seconds>.<key id>.<signature>
//
// The signature is the base64url, without padding, of the HMAC-SHA256 of all before
// the last dot. None of the parts can hold a dot, a comma, a space or a semicolon, so
// a token fits a header with a list and a cookie as it is.
//
// The package reads no file and no clock: keys and time are handed in.
package override

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxLife is how far in the future a token may expire. Who has signed one cannot
	// take it back but with its key.
	MaxLife = 30 * 24 * time.Hour

	// MaxLength is the length of the longest token, in bytes.
	MaxLength = len(version) + 2*maxName + maxExpiry + maxID + signatureLength + dots
)

const (
	version         = "v1"
	maxName         = 63 // of a service or a variant
	maxExpiry       = 11 // digits
	signatureLength = 43 // 32 bytes in base64url
	dots            = 5
)

// Why a token is not valid. The texts are single words, fit for a header and a log.
var (
	ErrMalformed  = errors.New("malformed")   // not of the form above
	ErrUnknownKey = errors.New("unknown-key") // signed with a key that is not in the file, or no longer
	ErrForged     = errors.New("forged")      // the signature is not that key's over this text
	ErrExpired    = errors.New("expired")     // its time is over
	ErrTooFar     = errors.New("too-far")     // it expires later than MaxLife from now
)

// Token is what an override says: this variant of this service, until then.
type Token struct {
	Service string
	Variant string
	Expires time.Time // in whole seconds; from then on the token is void
}

// Sign returns the text of t, signed with the first key. It refuses what Verify
// would: names that no record can hold, an expiry that is not after now or later
// than MaxLife from it. A fraction of a second in Expires is dropped.
func (k *Keys) Sign(t Token, now time.Time) (string, error) {
	switch {
	case !isName(t.Service):
		return "", fmt.Errorf("the service %q %s", t.Service, nameDetail)
	case !isName(t.Variant):
		return "", fmt.Errorf("the variant %q %s", t.Variant, nameDetail)
	}
	expires := time.Unix(t.Expires.Unix(), 0)
	switch err := within(expires, now); {
	case errors.Is(err, ErrExpired):
		return "", errors.New("the expiry must be in the future, by a second at least")
	case errors.Is(err, ErrTooFar):
		return "", fmt.Errorf("the expiry must be at most %d days away", MaxLife/(24*time.Hour))
	}
	key := &k.list[0]
	text := strings.Join([]string{version, t.Service, t.Variant, strconv.FormatInt(expires.Unix(), 10), key.id}, ".")
	signature := key.sign(text)
	return text + "." + string(signature[:]), nil
}

// Verify reads a token and says whether it holds at a moment. The error is one of
// those above. What a token says is returned only if it holds, and its times are not
// looked at before its signature, so that nobody learns from the error what only the
// key's holder can know.
func (k *Keys) Verify(token string, now time.Time) (Token, error) {
	p, ok := split(token)
	if !ok {
		return Token{}, ErrMalformed
	}
	key := k.find(p.keyID)
	if key == nil {
		return Token{}, ErrUnknownKey
	}
	if !key.verifies(p.signed, p.signature) {
		return Token{}, ErrForged
	}
	expires := time.Unix(p.expiry, 0)
	if err := within(expires, now); err != nil {
		return Token{}, err
	}
	return Token{Service: p.service, Variant: p.variant, Expires: expires}, nil
}

// within says whether an expiry is one that may be in force: nil, ErrExpired or
// ErrTooFar.
func within(expires, now time.Time) error {
	switch {
	case !expires.After(now):
		return ErrExpired
	case expires.After(now.Add(MaxLife)):
		return ErrTooFar
	}
	return nil
}

// parts is a token taken apart. Each text has one reading, and each reading one
// text.
type parts struct {
	signed           string // all before the last dot
	service, variant string
	expiry           int64 // Unix seconds
	keyID            string
	signature        string
}

func split(token string) (parts, bool) {
	last := strings.LastIndexByte(token, '.')
	if len(token) > MaxLength || strings.Count(token, ".") != dots || len(token)-last-1 != signatureLength {
		return parts{}, false
	}
	p := parts{signed: token[:last], signature: token[last+1:]}
	var v, expiry string
	rest := p.signed
	for _, part := range []*string{&v, &p.service, &p.variant, &expiry, &p.keyID} {
		*part, rest, _ = strings.Cut(rest, ".")
	}
	var ok bool
	p.expiry, ok = parseExpiry(expiry)
	return p, ok && v == version && isName(p.service) && isName(p.variant)
}

// parseExpiry reads Unix seconds as Sign writes them: digits, without a sign and
// without zeros in front.
func parseExpiry(s string) (int64, bool) {
	if s == "" || len(s) > maxExpiry || s[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil
}

const nameDetail = "must be 1 to 63 of a-z, 0-9 and hyphen, with no hyphen at either end"

// isName checks that s can be the name of a service or a variant, as the route
// record has them.
func isName(s string) bool {
	if s == "" || len(s) > maxName || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return strings.IndexFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-')
	}) < 0
}
