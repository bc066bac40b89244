package override

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// MinSecret is the least length of a key's secret, in bytes.
const MinSecret = 32

// maxID is the longest id of a key.
const maxID = 32

// Keys are the keys of a file: the first signs, all verify. They are immutable and
// safe for concurrent use.
type Keys struct{ list []key }

type key struct {
	id     string
	secret []byte
}

var (
	idPattern     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	secretPattern = regexp.MustCompile(`^[\x21-\x7E]+$`)
)

// ParseKeys reads the contents of a key file: a key a line, an id and a secret with
// white space between them.
//
//	# id     secret
//	2026-11  pRZl0Qw3mN7y5tV8kX2cB4hJ6fD9sA1gLuEiOoPzTxM=
//	2026-10  m4Xc8vB2nZ6kL0pQ5wE9rT3yU7iO1aSdFgHjKlMnBvC=
//
// Blank lines and those that begin with # are skipped. `openssl rand -base64 32`
// makes a secret. To change keys, put the new one second everywhere, then first;
// take the old one out when the last token that it has signed is over.
//
// A file without a key is an error. Errors give the line, never what stands there,
// and all of them at once.
func ParseKeys(contents []byte) (*Keys, error) {
	var (
		keys   Keys
		errs   []error
		number int
	)
	for line := range strings.Lines(string(contents)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		next, err := parseKey(fields)
		if err == nil {
			err = keys.add(next)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
		}
	}
	if len(errs) == 0 && len(keys.list) == 0 {
		errs = append(errs, errors.New("no key in the file"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &keys, nil
}

func parseKey(fields []string) (key, error) {
	switch {
	case len(fields) != 2:
		return key{}, fmt.Errorf("want 2 columns (id, secret), have %d", len(fields))
	case !idPattern.MatchString(fields[0]):
		return key{}, errors.New("id: want 1 to 32 letters, digits, _ and -")
	case len(fields[1]) < MinSecret:
		return key{}, fmt.Errorf("secret: want at least %d bytes, have %d", MinSecret, len(fields[1]))
	case !secretPattern.MatchString(fields[1]):
		return key{}, errors.New("secret: want visible ASCII")
	}
	return key{id: fields[0], secret: []byte(fields[1])}, nil
}

func (k *Keys) add(next key) error {
	for i := range k.list {
		switch {
		case k.list[i].id == next.id:
			return errors.New("the id was given before")
		case subtle.ConstantTimeCompare(k.list[i].secret, next.secret) == 1:
			return errors.New("the secret was given before")
		}
	}
	k.list = append(k.list, next)
	return nil
}

// String says how many keys there are, and keeps the secrets out of what is printed.
func (k *Keys) String() string { return fmt.Sprintf("%d override keys", len(k.list)) }

// find returns the key with an id, nil when there is none. Ids are no secret.
func (k *Keys) find(id string) *key {
	for i := range k.list {
		if k.list[i].id == id {
			return &k.list[i]
		}
	}
	return nil
}

// sign returns the signature of text.
func (k *key) sign(text string) (signature [signatureLength]byte) {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write([]byte(text))
	var sum [sha256.Size]byte
	base64.RawURLEncoding.Encode(signature[:], mac.Sum(sum[:0]))
	return signature
}

// verifies says whether signature is that of text. How long it takes does not depend
// on how much of the signature is right. The texts are compared, not the bytes that
// they stand for: four texts decode to the same 32 bytes.
func (k *key) verifies(text, signature string) bool {
	want := k.sign(text)
	return subtle.ConstantTimeCompare(want[:], []byte(signature)) == 1
}
