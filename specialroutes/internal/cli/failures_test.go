package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMistakesInTheCommandLineSendNothing(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 100)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Method + r.URL.Path }))
	defer elsewhere.Close()
	c := command{t: t, env: []string{"SPECIALROUTES_URL=" + elsewhere.URL}}
	tests := []struct{ line, want string }{
		{"routes", "a command is missing; want one of list, get, put"},
		{"routes lst", `there is no command "lst"`},
		{"rotes list", `unknown command "rotes"`},
		{"routes list x", "want: specialroutes routes list"},
		{"routes get", "want: specialroutes routes get SERVICE"},
		{"routes get a b", "want: specialroutes routes get SERVICE"},
		{"routes put", "want: specialroutes routes put SERVICE [FILE]"},
		{"routes put a --wait=accepted", "want applied"},
		{"routes put a --dry-run --wait", "--dry-run changes nothing"},
		{"routes put a --dryrun", "unknown flag: --dryrun"},
		{"routes weights a", "want: specialroutes routes weights"},
		{"routes weights a old", `"old": want VARIANT=WEIGHT`},
		{"routes weights a old=1.5", `"old=1.5": want VARIANT=WEIGHT`},
		{"routes weights a old=", `"old=": want VARIANT=WEIGHT`},
		{"routes weights a =1", `"=1": want VARIANT=WEIGHT`},
		{"routes weights a old=1 old=2", `"old=2": the variant was given before`},
		{"routes weights a old=99999999999999999999", "want VARIANT=WEIGHT"},
		{"routes active a", "want: specialroutes routes active SERVICE true|false"},
		{"routes active a yes", `"yes": want true or false`},
		{"routes rollback a", "want: specialroutes routes rollback SERVICE REVISION"},
		{"routes rollback a 0", `"0": want a revision`},
		{"routes rollback a latest", `"latest": want a revision`},
		{"routes history a --limit=0", "--limit and --before"},
		{"routes history a --limit=x", "--limit"},
		{"routes explain", "want: specialroutes routes explain SERVICE"},
		{"routes explain a --header x", `"x": want 'name: value'`},
		{"routes explain a --draw=-1", "--draw"},
		{"routes list --output=yaml", "want table or json"},
		{"routes list --timeout=0s", "--timeout"},
		{"routes list --listen=:1", "unknown flag: --listen"},
		{"gateways x", "want: specialroutes gateways"},
		{"routes list --server=", "--server: want a URL"},
		{"routes list --server=localhost:8910", "--server: want a URL"},
		{"routes list --server=ftp://localhost", "--server: want a URL"},
		{"routes list --server=http://u:p@localhost", "--server: want a URL without a user"},
		{"routes list --server=http://localhost?x=1", "--server: want a URL without a query"},
		{"gateways --server=http://localhost#x", "--server: want a URL without a query"},
	}
	for _, test := range tests {
		o := c.run(strings.Fields(test.line)...).expect(t, 2).complains(t, test.want)
		if o.stdout != "" {
			t.Errorf("%q prints %q", test.line, o.stdout)
		}
	}
	c.run("routes", "get", "").expect(t, 2).complains(t, "an argument is empty")
	if len(asked) > 0 {
		t.Errorf("a mistake was sent: %s", <-asked)
	}
}

// What answers in the place of specialroutes is not taken for it.
func TestAnswersOfOthersHaveTheirExitCodes(t *testing.T) {
	t.Parallel()
	const problem = "application/problem+json"
	tests := []struct {
		name       string
		status     int
		kind, body string
		code       int
		want       string
	}{
		{"a page", 200, "text/html", "<html>", 6, "this is no answer of specialroutes"},
		{"no JSON", 200, "application/json", "{", 1, "the answer"},
		{"a redirect", 302, "text/html", "", 6, "302 Found"},
		{"no such page", 404, "text/html", "<html>", 6, "404 Not Found"},
		{"a gateway", 404, problem, `{"code":"no_route"}`, 6, "(no_route)\n  this is no answer of specialroutes"},
		{"a page of a proxy", 403, "text/html", "<html>", 6, "this is no answer of specialroutes"},
		{"a fault without a code", 500, "text/plain", "x", 6, "this is no answer of specialroutes"},
		{"no such path", 404, problem, `{"code":"not_found"}`, 1, "(not_found)"},
		{"no record", 404, problem, `{"code":"no_record","detail":"There is none."}`, 3, "(no_record)\n  There is none."},
		{"bad request", 400, problem, `{"code":"bad_request","errors":[{"pointer":"limit","detail":"too \u001b[1m much"}]}`, 4, `"too \x1b[1m much"`},
		{"unauthorized", 401, problem, `{"code":"unauthorized"}`, 4, "(unauthorized)"},
		{"broken", 409, problem, `{"code":"record_broken","route":"/v1/routes/a"}`, 5, "see /v1/routes/a"},
		{"too many", 429, "text/plain", "", 6, "429"},
		{"internal", 500, problem, `{"code":"internal","correlationId":"c-1"}`, 1, "correlation ID c-1"},
		{"bad gateway", 502, "text/html", "<html>", 6, "502 Bad Gateway"},
		{"away", 503, problem, `{"code":"database_unavailable"}`, 6, "(database_unavailable)"},
		{"gateway timeout", 504, "text/html", "", 6, "504"},
		{"a problem that is none", 503, problem, `[`, 6, "503 Service Unavailable"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.kind)
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer elsewhere.Close()
			o := command{t: t}.run("routes", "get", "a", "--server="+elsewhere.URL).expect(t, test.code).complains(t, test.want)
			if o.stdout != "" {
				t.Errorf("prints %q beside an error", o.stdout)
			}
		})
	}
}

func TestAServerThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	c := command{t: t}
	c.run("routes", "list", "--server=http://127.0.0.1:1").expect(t, 6).complains(t, "GET /v1/routes: dial tcp 127.0.0.1:1: ", "refused")
	c.stdin = half
	o := c.run("routes", "put", orga, "--server=http://127.0.0.1:1").expect(t, 6)
	if strings.Contains(o.stderr, "not known") {
		t.Errorf("%q: a change that was not sent was not made", o.stderr)
	}

	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	server := "--server=http://" + silent.Addr().String()
	o = c.run("routes", "get", orga, server, "--timeout=200ms").expect(t, 6)
	if strings.Contains(o.stderr, "not known") {
		t.Errorf("%q: nothing was to be changed", o.stderr)
	}
	c.run("routes", "put", orga, server, "--timeout=200ms").expect(t, 6).complains(t, "whether the change was made is not known")
}

func TestAnInterruptEndsACommand(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), binary, "routes", "active", orga, "true", "--server=http://"+silent.Addr().String())
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the request has begun
		t.Fatal(err)
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait() // its code is in ProcessState
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(stderr.String(), "interrupted; whether the change was made is not known") {
		t.Errorf("ended with %d: %s", code, &stderr)
	}
}

const (
	readSecret  = "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"
	writeSecret = "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"
)

func TestTokensSayWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	closed := serve(t)
	closed.put(orga, half).expect(t, 4).complains(t, "403", "(writes_closed)")
	closed.run("routes", "list").expect(t, 0)

	file := writeFile(t, "reader "+readSecret+" read *\norga-team "+writeSecret+" write organization\n")
	read := "SPECIALROUTES_TOKEN_FILE=" + writeFile(t, readSecret+"\n")
	write := "SPECIALROUTES_TOKEN_FILE=" + writeFile(t, writeSecret)
	s := serveWith(t, []string{read}, "--tokens-file="+file)
	s.run("routes", "list").expect(t, 4).complains(t, "401", "(unauthorized)")
	s.with(read).run("routes", "list").expect(t, 0)
	for _, who := range []struct {
		token, service string
		code           int
	}{{read, orga, 4}, {write, "licensingservice", 4}, {write, orga, 0}} {
		c := s.with(who.token)
		c.stdin = strings.ReplaceAll(half, orga, who.service)
		c.run("routes", "put", who.service).expect(t, who.code)
	}
	s.with(read).run("routes", "history", orga).expect(t, 0).says(t, "orga-team")
	s.run("routes", "list", "--token-file=/nowhere").expect(t, 1).complains(t, "--token-file: open /nowhere")
	s.run("routes", "list", "--token-file="+writeFile(t, "two words")).expect(t, 1).complains(t, "must hold the secret of one token")
	s.run("routes", "list", "--token-file="+writeFile(t, strings.Repeat("x", 32))).expect(t, 4)

	// The token leaves this machine unencrypted only with a warning.
	away := s.with(read).run("routes", "list", "--server=http://specialroutes.invalid", "--timeout=5s").complains(t, "warning: the token is sent without TLS")
	if away.code != 6 {
		t.Errorf("a server whose name is not known = %d, want 6", away.code)
	}
}

func TestTheServersCertificateIsChecked(t *testing.T) {
	t.Parallel()
	certificate, key := certificate(t)
	s := serveWith(t, []string{"SPECIALROUTES_CA_FILE=" + certificate}, admin, "--tls-cert="+certificate, "--tls-key="+key)
	s.run("routes", "list", "--ca-file="+certificate).expect(t, 0)
	c := s.with()
	c.stdin = half
	o := c.run("routes", "put", orga).expect(t, 1).complains(t, "failed to verify certificate")
	if strings.Contains(o.stderr, "not known") {
		t.Errorf("%q: a change that was not sent was not made", o.stderr)
	}
	s.run("routes", "list", "--ca-file=/nowhere").expect(t, 1).complains(t, "--ca-file: open /nowhere")
	s.run("routes", "list", "--ca-file="+key).expect(t, 1).complains(t, "holds no certificate")
}

// certificate writes a certificate for 127.0.0.1 that is its own authority.
func certificate(t *testing.T) (certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})))
}
