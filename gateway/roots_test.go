package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/records/recordstest"
)

// authority signs certificates that no system trusts.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := new(authority)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = template, nil
	der, key := a.sign(t, template)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, a.key = cert, key
	return a
}

// sign makes a certificate and its key. Before the authority has a key of its own,
// the certificate signs itself.
func (a *authority) sign(t *testing.T, template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// upstream serves HTTP/1.1 and HTTP/2 with a certificate for an address, and answers
// with the protocol that it was asked in. It returns its address.
func (a *authority) upstream(t *testing.T, certified string) string {
	t.Helper()
	der, key := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(certified)},
	})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail, as they should
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// trustingGateway starts the binary with a route /NAME to each endpoint.
func trustingGateway(t *testing.T, loop bool, caFile string, endpoints map[string]string) *process {
	t.Helper()
	feed := recordstest.NewFeed(t)
	var routes []string
	for name, endpoint := range endpoints {
		feed.Put(name, fmt.Sprintf(`{"service":%q,"active":true,"default":"only","variants":[{"name":"only","weight":1,"endpoint":%q}]}`, name, endpoint))
		routes = append(routes, fmt.Sprintf("{prefix: /%s, service: %s}", name, name))
	}
	return launch(t, fmt.Sprintf("loop: %v\nroutes: [%s]\nrecords: {url: %q}\nupstream: {caFile: %q}\ndrain: {delay: 0s, limit: 5s}\n",
		loop, strings.Join(routes, ", "), feed.URL, caFile), nil)
}

// Upstreams with certificates of a private authority are spoken to by either engine
// and in both protocols. Others are not, and the log, not the answer, says why.
func TestUpstreamsAreTrustedByAnAuthorityOfTheirOwn(t *testing.T) {
	t.Parallel()
	known, unknown := newAuthority(t), newAuthority(t)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, append([]byte("ours\n"), known.pem()...), 0o600); err != nil {
		t.Fatal(err)
	}
	good, misnamed, strange := known.upstream(t, "127.0.0.1"), known.upstream(t, "192.0.2.1"), unknown.upstream(t, "127.0.0.1")
	for _, loop := range []bool{true, false} {
		p := trustingGateway(t, loop, caFile, map[string]string{
			"good": "https://" + good, "good-h2": "h2://" + good, "misnamed": "https://" + misnamed,
			"misnamed-h2": "h2://" + misnamed, "strange": "https://" + strange, "strange-h2": "h2://" + strange,
		})
		for name, want := range map[string]string{"good": "HTTP/1.1", "good-h2": "HTTP/2.0"} {
			if status, _, body := get(t, p.data+"/"+name); status != 200 || body != want {
				t.Errorf("loop %v, %s: %d %q, want 200 %q\n%s", loop, name, status, body, want, p.stderr)
			}
		}
		for name, why := range map[string]string{
			"misnamed": "certificate is valid for 192.0.2.1, not 127.0.0.1", "strange": "certificate signed by unknown authority",
		} {
			for _, name := range []string{name, name + "-h2"} {
				status, _, body := get(t, p.data+"/"+name)
				if status != 502 || !strings.Contains(body, `"connect_failed"`) || strings.Contains(body, "certificate") {
					t.Errorf("loop %v, %s: %d %s, want 502 connect_failed without the reason", loop, name, status, body)
				}
			}
			if !strings.Contains(p.stderr.String(), why) {
				t.Errorf("loop %v: the log does not say %q:\n%s", loop, why, p.stderr)
			}
		}
	}
}

// A changed file holds for new connections; those in the pool stay.
func TestAChangedCAFileHoldsForNewConnections(t *testing.T) {
	t.Parallel()
	before, after := newAuthority(t), newAuthority(t)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	kept, next := before.upstream(t, "127.0.0.1"), after.upstream(t, "127.0.0.1")
	for _, loop := range []bool{true, false} {
		if err := os.WriteFile(caFile, before.pem(), 0o600); err != nil {
			t.Fatal(err)
		}
		p := trustingGateway(t, loop, caFile, map[string]string{"kept": "https://" + kept, "next": "https://" + next, "never": "h2://" + kept})
		if status, _, _ := get(t, p.data+"/kept"); status != 200 {
			t.Fatalf("loop %v: %d", loop, status)
		}
		if err := os.WriteFile(caFile, after.pem(), 0o600); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the new authority is trusted", func() bool {
			status, _, _ := get(t, p.data+"/next")
			return status == 200
		})
		if status, _, _ := get(t, p.data+"/kept"); status != 200 {
			t.Errorf("loop %v: %d over the connection that was there", loop, status)
		}
		if status, _, _ := get(t, p.data+"/never"); status != 502 {
			t.Errorf("loop %v: %d over a new connection, want 502", loop, status)
		}
	}
}

func TestAnUnusableCAFileStopsTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no")})
	for file, want := range map[string]string{
		filepath.Join(dir, "nowhere"):                               "no such file",
		write("empty", nil):                                         "it holds no certificate in PEM",
		write("broken", append(newAuthority(t).pem(), broken...)):   "certificate 2:",
		write("key", []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n")): "it holds no certificate in PEM",
	} {
		settings := write("gateway.yaml", fmt.Appendf(nil, "id: gw-1\nroutes: [{prefix: /a, service: a}]\nupstream: {caFile: %q}\n", file))
		for _, command := range []string{"check", "serve"} {
			p := program{stdout: io.Discard, stderr: io.Discard}
			err := p.run(t.Context(), []string{command, "--config", settings})
			if err == nil || !strings.Contains(err.Error(), "upstream.caFile: ") || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error that names upstream.caFile, %s and %q", command, err, file, want)
			}
		}
	}
}
