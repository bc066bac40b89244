package filter

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"specialroutes.example/services/routing"
)

// keyBytes is the length of the gateway's key before it is written in base64url.
const keyBytes = 16

// RandomKey returns a new key for the gateway's cookie.
func RandomKey() string {
	var b [keyBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// stickyCookie gives the client the key that the decision was made with, so that
// the next one is the same. The answer is then this client's alone.
func stickyCookie(ex *Exchange) {
	if ex.FreshKey == "" {
		return
	}
	cookie := fmt.Sprintf("%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax", routing.KeyCookie, ex.FreshKey, ex.Record.KeyMaxAge())
	if clientScheme(ex) == "https" {
		cookie += "; Secure"
	}
	ex.Answer["Set-Cookie"] = append(slices.Clip(ex.Answer["Set-Cookie"]), cookie)
	makePrivate(ex.Answer)
}

// makePrivate keeps shared caches from storing the answer.
func makePrivate(h http.Header) {
	var kept []string
	for _, line := range h["Cache-Control"] {
		for directive := range strings.SplitSeq(line, ",") {
			switch directive = trimSpace(directive); {
			case directive == "" || EqualFold(directive, "public"):
			case EqualFold(directive, "private"), EqualFold(directive, "no-store"):
				return
			default:
				kept = append(kept, directive)
			}
		}
	}
	h["Cache-Control"] = []string{strings.Join(append(kept, "private"), ", ")}
}
