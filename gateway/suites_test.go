package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/records/recordstest"
)

// suite returns a program of the suites from outside, which the Makefile builds.
// Without it the test is skipped at home; where CI is set, it fails.
func suite(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "bin", name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("%v: make bin/%s builds it", err, name)
	}
	return path
}

// certificate writes a certificate of 127.0.0.1 that signs itself, and its key.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", private)
}

// launchAt starts the binary with everything routed to a service whose record leads
// to the endpoint alone, and with TLS if a certificate is given. It returns the data
// port.
func launchAt(t *testing.T, endpoint, certFile, keyFile string) string {
	t.Helper()
	feed := recordstest.NewFeed(t)
	feed.Put("all", fmt.Sprintf(`{"service":"all","active":true,"default":"only","variants":[{"name":"only","weight":1,"endpoint":%q}]}`, endpoint))
	more := ""
	if certFile != "" {
		more = fmt.Sprintf("tls: {certFile: %q, keyFile: %q}\n", certFile, keyFile)
	}
	p := launch(t, fmt.Sprintf("routes: [{prefix: /, service: all}]\nrecords: {url: %q}\ndrain: {delay: 0s, limit: 5s}\n", feed.URL)+more, nil)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.data, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// h2specFails are the cases that a plain server of Go 1.26 does not pass.
var h2specFails = []string{
	"http2/3.5 Sends invalid connection preface",
	"http2/4.2 Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE",
	"http2/5.1 closed: Sends a HEADERS frame",
	"http2/6.5.3 Sends multiple values of SETTINGS_INITIAL_WINDOW_SIZE",
	"http2/8.1.2.2 Sends a HEADERS frame that contains the connection-specific header field",
	"http2/8.1.2.2 Sends a HEADERS frame that contains the TE header field with any value other than \"trailers\"",
}

// The gateway keeps to HTTP/2 as well as the library that it is built on.
func TestH2Spec(t *testing.T) {
	t.Parallel()
	program := suite(t, "h2spec")
	answering := upstream(t, "h2spec wants a body of some length")
	for _, secured := range []bool{false, true} {
		t.Run(map[bool]string{false: "h2c", true: "TLS"}[secured], func(t *testing.T) {
			t.Parallel()
			report := filepath.Join(t.TempDir(), "report.xml")
			args := []string{"-h", "127.0.0.1", "-j", report}
			certFile, keyFile := "", ""
			if secured {
				certFile, keyFile = certificate(t)
				args = append(args, "-t", "-k")
			}
			port := launchAt(t, answering.URL, certFile, keyFile)
			out, _ := exec.CommandContext(t.Context(), program, append(args, "-p", port)...).CombinedOutput() // its exit code is 1 for any failure
			passed, failed := readReport(t, report)
			t.Logf("%d pass, %q fail", passed, failed)
			for _, name := range failed {
				if !slices.Contains(h2specFails, name) {
					t.Errorf("%s fails", name)
				}
			}
			if passed < 138 {
				t.Errorf("%d cases pass, want 138\n%s", passed, out)
			}
		})
	}
}

// readReport reads how many cases passed, and which failed.
func readReport(t *testing.T, file string) (passed int, failed []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Suites []struct {
			Cases []struct {
				Package string    `xml:"package,attr"`
				Name    string    `xml:"classname,attr"`
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Suites {
		for _, c := range s.Cases {
			switch {
			case c.Failure != nil || c.Error != nil:
				failed = append(failed, c.Package+" "+c.Name)
			case c.Skipped == nil:
				passed++
			}
		}
	}
	return passed, failed
}

// interopCases are gRPC's own, without those about credentials and balancers.
var interopCases = []string{
	"empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream",
	"timeout_on_sleeping_server", "cancel_after_begin", "cancel_after_first_response", "status_code_and_message",
	"special_status_message", "custom_metadata", "unimplemented_method", "unimplemented_service",
}

// Row 74: gRPC's own client and server understand one another through the gateway.
func TestGRPCInterop(t *testing.T) {
	t.Parallel()
	client, server := suite(t, "interop-client"), suite(t, "interop-server")
	port := freePort(t)
	cmd := exec.Command(server, "-port", port)
	var said buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "the interop server listens", func() bool {
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	t.Run("cases", func(t *testing.T) {
		for _, secured := range []bool{false, true} {
			certFile, keyFile, args := "", "", []string{"-server_host", "127.0.0.1"}
			name := "h2c"
			if secured {
				certFile, keyFile = certificate(t)
				name, args = "TLS", append(args, "-use_tls", "-use_test_ca", "-ca_file", certFile)
			}
			data := launchAt(t, "h2c://127.0.0.1:"+port, certFile, keyFile)
			for _, c := range interopCases {
				t.Run(name+"/"+c, func(t *testing.T) {
					t.Parallel()
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					out, err := exec.CommandContext(ctx, client, append([]string{"-server_port", data, "-test_case", c}, args...)...).CombinedOutput()
					if err != nil {
						t.Errorf("%v\n%s", err, bytes.TrimSpace(out))
					}
				})
			}
		}
	})
}

// freePort returns a port that nobody listened on a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
