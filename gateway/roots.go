package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/services/reread"
)

// errNoCertificate says that a file of certificates has none.
var errNoCertificate = errors.New("it holds no certificate in PEM")

// upstreamRoots returns what gives the certificates of the moment that upstreams'
// are checked against, nil when they are the system's alone. A file that cannot be
// used stops the start; later the last good one stays in force. log may be nil.
func upstreamRoots(c *config.Config, log *slog.Logger) (func() *x509.CertPool, error) {
	if c.Upstream.CAFile == "" {
		return nil, nil //nolint:nilnil // nil is what forward.Options takes for the system's
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	roots, err := reread.Open(log, time.Now, func(contents [][]byte) (*x509.CertPool, error) {
		return besideTheSystems(contents[0])
	}, c.Upstream.CAFile)
	if err != nil {
		return nil, fmt.Errorf("upstream.caFile: %w", err)
	}
	return roots.Current, nil
}

// besideTheSystems returns the system's certificates and those of a text in PEM. All
// of these must be usable: with one left out, some upstreams would fail for no reason
// that shows.
func besideTheSystems(text []byte) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // an image may have none
	}
	n := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		n++
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", n, err)
		}
		pool.AddCert(cert)
	}
	if n == 0 {
		return nil, errNoCertificate
	}
	return pool, nil
}
