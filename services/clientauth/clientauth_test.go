package clientauth_test

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"specialroutes.example/services/clientauth"
)

func write(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAuthorities_TrustTheServersThatTheySigned(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	pool, err := clientauth.Authorities(write(t, "a comment\n"+string(block)))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		t.Fatalf("the server is not trusted: %v", err)
	}
	res.Body.Close()
}

func TestAuthorities_AFileWithoutACertificateIsRefused(t *testing.T) {
	t.Parallel()
	for _, file := range []string{write(t, "none"), write(t, ""), filepath.Join(t.TempDir(), "none")} {
		if _, err := clientauth.Authorities(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("Authorities(%s) = %v, want an error with its name", file, err)
		}
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{"secret": "secret", " \nsecret=+/\r\n": "secret=+/"} {
		if got, err := clientauth.Token(write(t, content)); err != nil || got != want {
			t.Errorf("Token of %q = %q, %v, want %q", content, got, err, want)
		}
	}
	if got, err := clientauth.Token(""); err != nil || got != "" {
		t.Errorf("Token of no file = %q, %v", got, err)
	}
	for _, content := range []string{"", " \n", "two words", "two\nlines", "s\x00", "sécret"} {
		file := write(t, content)
		_, err := clientauth.Token(file)
		if err == nil || !strings.Contains(err.Error(), file) || content != "" && strings.Contains(err.Error(), content) {
			t.Errorf("Token of %q = %v, want an error with the file's name alone", content, err)
		}
	}
	if _, err := clientauth.Token(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is taken")
	}
}
