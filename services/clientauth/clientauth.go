// Package clientauth reads from files what a client needs to trust a server and to be
// trusted by it.
package clientauth

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
)

// largest is how much of a token's file is read, in bytes.
const largest = 64 << 10

// Authorities reads a PEM file of the certificates that are trusted instead of the
// system's. The error names the file.
func Authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return pool, nil
}

// Token reads a file that holds the secret of one token, alone, with white space
// around it at most. "" is no file and no token. The error names the file and never
// what it holds.
func Token(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, largest))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s must hold the secret of one token and nothing else", file)
	}
	return token, nil
}
