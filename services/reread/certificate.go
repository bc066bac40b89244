package reread

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// Certificate returns a server's TLS settings with a certificate that is read anew
// when its files change. While key and chain do not fit, as between the writing of
// the one and the other, the last pair stays in use.
func Certificate(log *slog.Logger, now func() time.Time, certFile, keyFile string) (*tls.Config, error) {
	pair, err := Open(log, now, func(contents [][]byte) (*tls.Certificate, error) {
		c, err := tls.X509KeyPair(contents[0], contents[1])
		return &c, err
	}, certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return pair.Current(), nil
		},
	}, nil
}
