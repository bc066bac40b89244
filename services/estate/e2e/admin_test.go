package e2e_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWithoutTokensReadsAreOpenAndWritesAreForbidden(t *testing.T) {
	t.Parallel()
	addr := shared.ports.free(t)
	p := startProcess(t, "specialroutes", binaryPath(t, "specialroutes"), []string{
		"SPECIALROUTES_LISTEN=" + addr, "DATABASE_URL=sqlite://" + filepath.Join(t.TempDir(), "special.db"),
	})
	p.ready(t, "http://"+addr+"/readyz")
	r := routes{url: "http://" + addr}
	got, err := r.try(book{"a-service", "Y", "http://x:1", 5})
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, got, 403)
	fromHere := headers{{"X-Real-IP", "127.0.0.1"}, {"X-Forwarded-For", "127.0.0.1"}}
	wantProblem(t, call(t, "DELETE", r.of("a-service"), nil, fromHere), 403)
	wantProblem(t, r.read(t, "a-service"), 404)
	if _, err := changes(r.url, "", "0s"); err != nil {
		t.Error(err)
	}
}

// The secrets of the tokens file below.
const (
	opsSecret  = "ops-0123456789abcdef0123456789abcdef"
	gateSecret = "gate-0123456789abcdef0123456789abcde"
	teamSecret = "team-0123456789abcdef0123456789abcde"
)

// guarded starts a specialroutes with tokens and, if there is a certificate, TLS.
func guarded(t *testing.T, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	lines := "ops " + opsSecret + " write *\ngateways " + gateSecret + " read *\nteam " + teamSecret + " write lab-\n"
	if err := os.WriteFile(tokens, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := shared.ports.free(t)
	p := startProcess(t, "specialroutes", binaryPath(t, "specialroutes"), append([]string{
		"SPECIALROUTES_LISTEN=" + addr, "SPECIALROUTES_TOKENS_FILE=" + tokens,
		"DATABASE_URL=sqlite://" + filepath.Join(dir, "special.db"),
	}, more...))
	poll(t, 20*time.Second, "specialroutes listens", func() error {
		if p.exited() {
			t.Fatalf("specialroutes ended:\n%s", p.out)
		}
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return addr
}

func TestATokenMayDoWhatItsLineSays(t *testing.T) {
	t.Parallel()
	base := "http://" + guarded(t)
	poll(t, 20*time.Second, "readyz needs no token", func() error { return wantStatus(base+"/readyz", 200) })
	for _, path := range []string{"/healthz", "/metrics"} {
		if err := wantStatus(base+path, 200); err != nil {
			t.Errorf("without a token: %v", err)
		}
	}
	r := routes{url: base}
	const none = ""
	for _, test := range []struct {
		name, method, service, token string
		status                       int
	}{
		{"nobody reads", "GET", "lab-a", none, 401},
		{"nobody writes", "PUT", "lab-a", none, 401},
		{"nobody deletes", "DELETE", "lab-a", none, 401},
		{"a wrong token reads", "GET", "lab-a", "wrong-0123456789abcdef0123456789abcd", 401},
		{"a longer token writes", "PUT", "lab-a", opsSecret + "x", 401},
		{"a shorter token writes", "PUT", "lab-a", opsSecret[:len(opsSecret)-1], 401},
		{"a token's name is no token", "PUT", "lab-a", "ops", 401},
		{"a reader writes", "PUT", "lab-a", gateSecret, 403},
		{"a writer writes", "PUT", "other", opsSecret, 201},
		{"a reader reads", "GET", "other", gateSecret, 200},
		{"a team writes another's", "PUT", "other", teamSecret, 403},
		{"a team deletes another's", "DELETE", "other", teamSecret, 403},
		{"a team writes its own", "PUT", "lab-a", teamSecret, 201},
		{"a team deletes its own", "DELETE", "lab-a", teamSecret, 204},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := document("serviceName", `"`+test.service+`"`)
			h := headers{{"Content-Type", jsonType}}
			if test.token != none {
				h = append(h, [2]string{"Authorization", "Bearer " + test.token})
			}
			got := call(t, test.method, r.of(test.service), strings.NewReader(body), h)
			if got.status != test.status {
				t.Errorf("status = %d, want %d: %s", got.status, test.status, got.body)
			}
			if test.status >= 400 {
				wantProblem(t, got, test.status)
			}
			if test.status == 401 && got.header.Get("WWW-Authenticate") == "" {
				t.Error("a 401 without WWW-Authenticate")
			}
			if strings.Contains(string(got.body), "0123456789abcdef") {
				t.Errorf("the answer tells a secret: %s", got.body)
			}
		})
	}
}

// certificate makes a certificate for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func TestTheGatewayFollowsOverTLSWithAToken(t *testing.T) {
	t.Parallel()
	certFile, keyFile := certificate(t)
	base := "https://" + guarded(t, "SPECIALROUTES_TLS_CERT="+certFile, "SPECIALROUTES_TLS_KEY="+keyFile)
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(gateSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLab(t, labOptions{records: base, config: map[string]string{
		"records": fmt.Sprintf("{url: [%q], tokenFile: %q, caFile: %q}", base, tokenFile, certFile),
	}})

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(readFile(t, certFile)))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	document, err := json.Marshal(book{labService, "Y", l.new.URL, 0})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest("PUT", base+"/v1/route/abtesting/"+labService, bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", jsonType)
	req.Header.Set("Authorization", "Bearer "+opsSecret)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 201 {
		t.Fatalf("PUT: status = %d", resp.StatusCode)
	}
	l.answers(t, "new")
	if text := l.gateway.out.String(); strings.Contains(text, gateSecret) {
		t.Error("the gateway's log tells its token")
	}
}

func TestTheContractIsServed(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	got := call(t, "GET", r.url+"/openapi.yaml", nil, nil)
	want := readFile(t, filepath.Join(repositoryRoot(t), "docs", "openapi.yaml"))
	if got.status != 200 || string(got.body) != want {
		t.Errorf("status %d, %d bytes; want the %d bytes of docs/openapi.yaml", got.status, len(got.body), len(want))
	}
}

func TestMigrateBringsADatabaseUpToDateAndEnds(t *testing.T) {
	migrate := func(t *testing.T, database string) {
		t.Helper()
		for range 2 { // the second time there is nothing to do
			p := startProcess(t, "specialroutes migrate", binaryPath(t, "specialroutes"), []string{"DATABASE_URL=" + database}, "migrate")
			if code := p.wait(t, 30*time.Second); code != 0 {
				t.Fatalf("exit code %d: %s", code, p.out)
			}
		}
		addr := shared.ports.free(t)
		p := startProcess(t, "specialroutes", binaryPath(t, "specialroutes"), []string{
			"SPECIALROUTES_LISTEN=" + addr, "SPECIALROUTES_INSECURE_ADMIN=true", "DATABASE_URL=" + database,
			"SPECIALROUTES_NO_MIGRATE=true",
		})
		p.ready(t, "http://"+addr+"/readyz")
		routes{url: "http://" + addr}.write(t, book{"a-service", "Y", "http://x:1", 5})
	}
	t.Run("SQLite", func(t *testing.T) { migrate(t, "sqlite://"+filepath.Join(t.TempDir(), "special.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { migrate(t, postgres(t).newDatabase(t)) })
}

func TestASchemaNewerThanTheBinaryIsLoggedAndServed(t *testing.T) {
	p := postgresLab(t)
	r := routes{url: p.url}
	r.write(t, book{"a-service", "Y", "http://x:1", 5})
	p.special.stop(t)
	p.sql(t, p.database, "UPDATE schema_migrations SET version = 999999")
	p.start(t)
	r.readBook(t, "a-service")
	r.write(t, book{"a-service", "Y", "http://x:1", 6})
	if !strings.Contains(p.special.out.String(), "999999") {
		t.Errorf("the log does not tell of the newer schema:\n%s", p.special.out)
	}
}
