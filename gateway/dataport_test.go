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
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/records/recordstest"
)

// writeCertificate writes a certificate for this machine and its key, and returns it.
func writeCertificate(t *testing.T, serial int64, certFile, keyFile string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// trusting makes a client that trusts certificates.
func trusting(all ...*x509.Certificate) *http.Transport {
	roots := x509.NewCertPool()
	for _, c := range all {
		roots.AddCert(c)
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true, ForceAttemptHTTP2: true}
}

// The data port speaks TLS, HTTP/1.1 and HTTP/2, and takes up renewed files, whether
// the loop serves or not.
func TestDataPortSpeaksTLS(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-Proto"))
	}))
	defer up.Close()
	for _, loop := range []bool{true, false} {
		dir := t.TempDir()
		certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		first := writeCertificate(t, 1, certFile, keyFile)
		g := start(t, settings(recordstest.NewFeed(t).URL, up, fmt.Sprintf("loop: %v\ntls: {certFile: %q, keyFile: %q}\n", loop, certFile, keyFile))).open(t)
		url := strings.Replace(g.data, "http:", "https:", 1) + "/api/org/x"
		for _, http1 := range []bool{false, true} {
			transport := trusting(first)
			if http1 {
				transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
			}
			res, err := (&http.Client{Transport: transport}).Get(url)
			if err != nil {
				t.Fatalf("%v\n%s", err, g.stderr)
			}
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if want := map[bool]int{true: 1, false: 2}[http1]; string(body) != "https" || res.ProtoMajor != want {
				t.Errorf("loop %v: HTTP/%d says %q, want HTTP/%d and https", loop, res.ProtoMajor, body, want)
			}
			transport.CloseIdleConnections()
		}
		second := writeCertificate(t, 2, certFile, keyFile)
		eventually(t, "the new certificate is in use", func() bool {
			transport := trusting(second)
			defer transport.CloseIdleConnections()
			res, err := (&http.Client{Transport: transport}).Get(url)
			if err != nil {
				return false
			}
			_ = res.Body.Close()
			return true
		})
	}
}

func TestUnusableCertificateStopsTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	settings := "id: gw-1\nroutes: [{prefix: /a, service: a}]\ntls: {certFile: /nowhere/cert.pem, keyFile: /nowhere/key.pem}\n"
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	p := program{stdout: io.Discard, stderr: io.Discard}
	for _, command := range []string{"check", "serve"} {
		if err := p.run(t.Context(), []string{command, "--config", file}); err == nil || !strings.Contains(err.Error(), "/nowhere/cert.pem") {
			t.Errorf("%s: %v, want an error that names the file", command, err)
		}
	}
}

// The collector is tuned unless the environment does it.
func TestGC(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	for _, tt := range []struct {
		environ []string
		want    int
	}{
		{[]string{"GOGC=50"}, 77}, {[]string{"GOMEMLIMIT=1GiB"}, 77}, {[]string{"GOGC="}, gcPercent}, {nil, gcPercent},
	} {
		debug.SetGCPercent(77)
		setGC(tt.environ)
		if got := debug.SetGCPercent(77); got != tt.want {
			t.Errorf("%q: %d percent, want %d", tt.environ, got, tt.want)
		}
	}
}

// With the default there is a descriptor left for each client's upstream, and some for
// the process itself.
func TestConnectionsWithinTheDescriptors(t *testing.T) {
	t.Parallel()
	for descriptors, want := range map[int]int{0: 0, 64: 16, 96: 16, 256: 96, 1024: 480, 1 << 20: 1<<19 - 32} {
		if got := connectionsWithin(descriptors); got != want {
			t.Errorf("%d descriptors: %d connections, want %d", descriptors, got, want)
		}
	}
}
