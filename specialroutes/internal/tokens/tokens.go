// Package tokens knows who may do what: the tokens of a file, each with a name, a
// secret, a scope and the services that it is for.
//
// A file holds a token a line, in four columns:
//
//	# name        secret                                        scope  services
//	gateways      pRZl0Qw3mN7y5tV8kX2cB4hJ6fD9sA1gLuEiOoPzTxM=  read   *
//	orga-team     m4Xc8vB2nZ6kL0pQ5wE9rT3yU7iO1aSdFgHjKlMnBvC=  write  organization,orgservice
//
// The last column is a list of prefixes of service names, with commas; "*" alone
// is all services. `openssl rand -base64 32` makes a secret. Blank lines and those
// that begin with # are skipped.
package tokens

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Scope is what a token allows.
type Scope int

// The scopes. Write includes Read.
const (
	Read Scope = iota + 1
	Write
)

// MinSecret is the least length of a secret, in bytes.
const MinSecret = 32

// Token is who a request comes from. The zero value may nothing.
type Token struct {
	// Name is the actor in a record's history.
	Name string

	scope    Scope
	all      bool
	prefixes []string
}

// Everybody returns the token of whoever comes without one, where that is allowed:
// it is for all services, within the scope.
func Everybody(scope Scope) Token {
	return Token{Name: "anonymous", scope: scope, all: true}
}

// Allows says whether the token includes a scope.
func (t Token) Allows(s Scope) bool { return t.scope >= s }

// All says whether the token is for all services.
func (t Token) All() bool { return t.all }

// Covers says whether the token is for a service.
func (t Token) Covers(service string) bool {
	if t.all {
		return true
	}
	for _, p := range t.prefixes {
		if strings.HasPrefix(service, p) {
			return true
		}
	}
	return false
}

// entry is a token with the hash of its secret. The secret itself is not kept.
type entry struct {
	token Token
	hash  [sha256.Size]byte
}

// Set is the tokens of a file. It is immutable and safe for concurrent use.
type Set struct{ entries []entry }

// Find returns the token of a secret. How long it takes depends neither on which
// token it is nor on how much of the secret is right: what is compared are hashes,
// all of them, in constant time.
func (s *Set) Find(secret string) (Token, bool) {
	hash := sha256.Sum256([]byte(secret))
	found := -1
	for i := range s.entries {
		equal := subtle.ConstantTimeCompare(hash[:], s.entries[i].hash[:])
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	if found < 0 {
		return Token{}, false
	}
	return s.entries[found].token, true
}

var (
	namePattern   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._@-]{0,62}[A-Za-z0-9])?$`)
	secretPattern = regexp.MustCompile(`^[\x21-\x7E]+$`)
	prefixPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
)

// Parse reads the contents of a token file. A file without a token is an error: it
// would open what it was meant to close. Errors give the line and the column, never
// what stands there, and all of them at once.
func Parse(contents []byte) (*Set, error) {
	var (
		set  Set
		errs []error
	)
	names := map[string]bool{}
	hashes := map[[sha256.Size]byte]bool{}
	number := 0
	for line := range strings.Lines(string(contents)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		e, err := parseLine(fields)
		switch {
		case err != nil:
		case names[e.token.Name]:
			err = errors.New("the name was given before")
		case hashes[e.hash]:
			err = errors.New("the secret was given before")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		names[e.token.Name], hashes[e.hash] = true, true
		set.entries = append(set.entries, e)
	}
	if len(errs) == 0 && len(set.entries) == 0 {
		errs = append(errs, errors.New("no token in the file"))
	}
	return &set, errors.Join(errs...)
}

func parseLine(fields []string) (entry, error) {
	if len(fields) != 4 {
		return entry{}, fmt.Errorf("want 4 columns (name, secret, scope, services), have %d", len(fields))
	}
	e := entry{token: Token{Name: fields[0]}, hash: sha256.Sum256([]byte(fields[1]))}
	if !namePattern.MatchString(fields[0]) {
		return entry{}, errors.New("name: want letters, digits and . _ @ - inside, at most 64")
	}
	if len(fields[1]) < MinSecret {
		return entry{}, fmt.Errorf("secret: want at least %d bytes, have %d", MinSecret, len(fields[1]))
	}
	if !secretPattern.MatchString(fields[1]) {
		return entry{}, errors.New("secret: want visible ASCII")
	}
	switch fields[2] {
	case "read":
		e.token.scope = Read
	case "write":
		e.token.scope = Write
	default:
		return entry{}, errors.New("scope: want read or write")
	}
	if fields[3] == "*" {
		e.token.all = true
		return e, nil
	}
	e.token.prefixes = strings.Split(fields[3], ",")
	for _, p := range e.token.prefixes {
		if !prefixPattern.MatchString(p) {
			return entry{}, errors.New("services: want prefixes of service names with commas and no spaces, or *")
		}
	}
	return e, nil
}
