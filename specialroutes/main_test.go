package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/services/reread"
	"specialroutes.example/services/service"
	"specialroutes.example/specialroutes/internal/store/postgres/postgrestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	bookPath = "/v1/route/abtesting/organizationservice"
	half     = `{"serviceName":"organizationservice","active":"Y","endpoint":"http://orgservice-new:8087","weight":5}`
)

// process is the program, running in this process.
type process struct {
	t      *testing.T
	url    string
	client *http.Client
	log    *safeBuffer
	cancel context.CancelFunc
	done   chan error
}

// safeBuffer may be read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start runs the program on a free port and returns when it listens. It is stopped
// at the end of the test, if it was not before.
func start(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the test looks at the certificate
	pr := &process{t: t, log: new(safeBuffer), cancel: cancel, done: make(chan error, 1), client: &http.Client{Transport: transport}}
	listening := make(chan string, 1)
	p := &program{environ: environ, stderr: pr.log, onListen: func(a string) { listening <- a }}
	root := p.command()
	root.SetArgs(append([]string{"--listen=127.0.0.1:0", "--drain-delay=0s"}, args...))
	go func() { pr.done <- root.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		transport.CloseIdleConnections()
		if err := <-pr.done; err != nil {
			t.Errorf("the program ended with %v", err)
		}
		pr.done <- nil
	})
	select {
	case a := <-listening:
		pr.url = "http://" + a
	case err := <-pr.done:
		pr.done <- nil
		t.Fatalf("the program did not start: %v", err)
	}
	return pr
}

// stop ends the program and returns its error.
func (p *process) stop() error {
	p.cancel()
	err := <-p.done
	p.done <- nil
	return err
}

func (p *process) do(method, path, body string, headers ...string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// await asks until the status is there.
func (p *process) await(status int, method, path, body string, headers ...string) string {
	p.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		got, answer := p.do(method, path, body, headers...)
		if got == status {
			return answer
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s %s = %d %s, want %d; log:\n%s", method, path, got, answer, status, p.log)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *process) ready() *process {
	p.t.Helper()
	p.await(http.StatusOK, "GET", "/readyz", "")
	return p
}

func (p *process) cursor() string {
	p.t.Helper()
	_, body := p.do("GET", "/v1/changes", "")
	_, rest, _ := strings.Cut(body, `"cursor":"`)
	cursor, _, _ := strings.Cut(rest, `"`)
	return cursor
}

func TestServe_ARecordIsThereAfterARestart(t *testing.T) {
	t.Parallel()
	database := "DATABASE_URL=sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "x.db"))
	first := start(t, []string{database}, "--insecure-admin").ready()
	first.await(http.StatusCreated, "PUT", bookPath, half)
	if err := first.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	second := start(t, []string{database}, "serve").ready()
	second.await(http.StatusOK, "GET", bookPath, "")
	if status, _ := second.do("PUT", bookPath, half); status != http.StatusForbidden {
		t.Errorf("without --insecure-admin a PUT is answered with %d", status)
	}
}

func TestServe_AChangeThroughOneProcessWakesFollowersOfAnother(t *testing.T) {
	t.Parallel()
	database := "DATABASE_URL=" + postgrestest.NewEmpty(t)
	a := start(t, []string{database}, "--insecure-admin").ready()
	b := start(t, []string{database}, "--insecure-admin").ready()
	for i, body := range []string{half, strings.Replace(half, "5}", "9}", 1)} {
		cursor := b.cursor()
		type answer struct {
			body string
			at   time.Time
		}
		answers := make(chan answer, 1)
		go func() {
			_, got := b.do("GET", "/v1/changes?wait=50s&after="+cursor, "")
			answers <- answer{got, time.Now()}
		}()
		b.awaitMetric("specialroutes_followers 1")
		written := time.Now()
		if status, got := a.do("PUT", bookPath, body); status >= http.StatusMultipleChoices {
			t.Fatalf("PUT = %d %s", status, got)
		}
		got := <-answers
		if late := got.at.Sub(written); late > time.Second || !strings.Contains(got.body, "orgservice-new") || strings.Contains(got.body, `"full":true`) {
			t.Errorf("change %d: after %v the follower got %s", i, late, got.body)
		}
		// The other way: one that is ahead of the replica it asks is answered by the database.
		if status, got := a.do("GET", "/v1/changes?after="+b.cursor(), ""); status != http.StatusOK || strings.Contains(got, `"full":true`) {
			t.Errorf("change %d: asked with a newer cursor = %d %s", i, status, got)
		}
	}
}

func (p *process) awaitMetric(line string) {
	p.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, body := p.do("GET", "/metrics", "")
		if strings.Contains(body, line) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("no %q in %s", line, body)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestServe_TheDatabaseMayComeLaterAndGoAgain(t *testing.T) {
	t.Parallel()
	address := postgrestest.NewEmpty(t)
	line := newLine(t, address)
	p := start(t, []string{"DATABASE_URL=" + line.through(address)}, "--insecure-admin")
	away := func() {
		t.Helper()
		p.await(http.StatusServiceUnavailable, "GET", "/readyz", "")
		for _, request := range []string{"GET " + bookPath, "DELETE " + bookPath, "GET /v1/changes?wait=50s", "GET /v1/route/abtesting"} {
			method, path, _ := strings.Cut(request, " ")
			if status, body := p.do(method, path, ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "database_unavailable") {
				t.Errorf("%s = %d %s, want 503", request, status, body)
			}
		}
		if status, _ := p.do("GET", "/healthz", ""); status != http.StatusOK {
			t.Errorf("/healthz = %d", status)
		}
	}
	away()
	line.plug()
	p.ready()
	p.await(http.StatusCreated, "PUT", bookPath, half)
	cursor := p.cursor()

	answers := make(chan int, 1)
	go func() {
		status, _ := p.do("GET", "/v1/changes?wait=50s&after="+cursor, "")
		answers <- status
	}()
	p.awaitMetric("specialroutes_followers 1")
	line.unplug()
	if status := <-answers; status != http.StatusServiceUnavailable {
		t.Errorf("the waiting follower got %d, want 503", status)
	}
	away()
	line.plug()
	p.ready()
	p.await(http.StatusOK, "PUT", bookPath, half)
	if strings.Contains(p.log.String(), password(t, address)) {
		t.Error("the password stands in the log")
	}
}

// password returns the one in an address; without one, what never occurs.
func password(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if secret, ok := u.User.Password(); ok && secret != "" {
		return secret
	}
	return "\x00"
}

// line is a connection to the database that can be cut.
type line struct {
	t       *testing.T
	target  string
	address string

	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
	running  sync.WaitGroup
}

func newLine(t *testing.T, database string) *line {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, target: u.Host, address: reserved.Addr().String()}
	_ = reserved.Close()
	t.Cleanup(func() { l.unplug(); l.running.Wait() })
	return l
}

// through is the database's address by way of the line.
func (l *line) through(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		l.t.Fatal(err)
	}
	u.Host = l.address
	return u.String()
}

func (l *line) plug() {
	l.t.Helper()
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		l.t.Fatal(err)
	}
	l.listener = listener
	l.running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", l.target)
			if err != nil {
				_ = near.Close()
				continue
			}
			l.mu.Lock()
			l.open = append(l.open, near, far)
			l.mu.Unlock()
			l.running.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			l.running.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	})
}

func (l *line) unplug() {
	if l.listener != nil {
		_ = l.listener.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

func TestServe_MigrationsMayBeLeftToTheCommand(t *testing.T) {
	t.Parallel()
	database := "DATABASE_URL=" + postgrestest.NewEmpty(t)
	p := start(t, []string{database}, "--no-migrate", "--insecure-admin")
	p.await(http.StatusServiceUnavailable, "GET", "/readyz", "")
	for range 2 { // the second time there is nothing to do
		if err := run(t.Context(), []string{"migrate"}, []string{database}, p.log, nil); err != nil {
			t.Fatalf("migrate: %v", err)
		}
	}
	p.ready()
	p.await(http.StatusCreated, "PUT", bookPath, half)
}

func TestServe_AStopAnswersFollowersAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"DATABASE_URL=sqlite://" + filepath.Join(t.TempDir(), "x.db")}).ready()
	cursor := p.cursor()
	answers := make(chan int, 1)
	go func() {
		status, _ := p.do("GET", "/v1/changes?wait=50s&after="+cursor, "")
		answers <- status
	}()
	p.awaitMetric("specialroutes_followers 1")
	before := time.Now()
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
	if status := <-answers; status != http.StatusOK {
		t.Errorf("the follower got %d", status)
	}
}

func TestServe_TokensAndCertificatesAreReadAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	const first, second = "1111111111111111111111111111111111", "2222222222222222222222222222222222"
	writeFile(t, file("tokens"), "a "+first+" write *\n")
	writeCertificate(t, file("cert"), file("key"), 1)
	p := start(t, []string{"DATABASE_URL=sqlite://" + file("x.db")},
		"--tokens-file="+file("tokens"), "--tls-cert="+file("cert"), "--tls-key="+file("key"))
	p.url = "https" + strings.TrimPrefix(p.url, "http")
	p.ready()
	p.await(http.StatusCreated, "PUT", bookPath, half, "Authorization", "Bearer "+first)
	if got := p.serial(); got != 1 {
		t.Errorf("certificate %d, want 1", got)
	}

	writeFile(t, file("tokens"), "a "+first+" \n") // a mistake takes nothing away
	time.Sleep(reread.Interval)                    // of which the file is looked at once
	p.await(http.StatusOK, "GET", bookPath, "", "Authorization", "Bearer "+first)
	writeFile(t, file("tokens"), "b "+second+" write *\n")
	writeCertificate(t, file("cert"), file("key"), 2)
	p.await(http.StatusOK, "GET", bookPath, "", "Authorization", "Bearer "+second)
	p.await(http.StatusUnauthorized, "GET", bookPath, "", "Authorization", "Bearer "+first)
	for deadline := time.Now().Add(10 * time.Second); p.serial() != 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not served")
		}
	}
	healthy(t, p, "--tls-cert="+file("cert"), "--tls-key="+file("key"))
}

// healthy runs the command that a container does.
func healthy(t *testing.T, p *process, args ...string) {
	t.Helper()
	u, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	args = append(args, "healthcheck", "--listen="+u.Host)
	if err := run(t.Context(), args, nil, io.Discard, nil); err != nil {
		t.Errorf("healthcheck: %v", err)
	}
}

func (p *process) serial() int64 {
	p.t.Helper()
	u, err := url.Parse(p.url)
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := tls.Dial("tcp", u.Host, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test looks at it
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeCertificate(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})))
}

func TestRun_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // after the subtests, which are parallel
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"a command that is none", []string{"server"}, "unknown command"},
		{"a flag that is none", []string{"--listn=:1"}, "unknown flag"},
		{"a setting", []string{"--listen=x"}, "--listen"},
		{"no token file", []string{"--tokens-file=" + filepath.Join(dir, "none")}, "no such file"},
		{"no certificate", []string{"--tls-cert=" + filepath.Join(dir, "none"), "--tls-key=x"}, "no such file"},
		{"an address that cannot be read", []string{"--database-url=postgres://u:hunter2@[x"}, "cannot parse"},
		{"a port in use", []string{"--database-url=sqlite://" + filepath.Join(dir, "x.db"), "--listen=" + taken.Addr().String()}, "in use"},
		{"no directory", []string{"--database-url=sqlite://" + filepath.Join(dir, "none", "x.db"), "--listen=127.0.0.1:0"}, "no such file"},
		{"migrating what is away", []string{"migrate", "--database-url=postgres://u:hunter2@127.0.0.1:1/x"}, "not available"},
		{"nobody is there", []string{"healthcheck", "--listen=127.0.0.1:1"}, "refused"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var log safeBuffer
			err := run(t.Context(), append(test.args, "--drain-delay=0s"), nil, &log, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("run(%q) = %v, want %q", test.args, err, test.want)
			}
			if strings.Contains(fmt.Sprint(err)+log.String(), "hunter2") {
				t.Errorf("run(%q) tells the password: %v %s", test.args, err, &log)
			}
		})
	}
}

func TestServe_OneProcessForASQLiteFile(t *testing.T) {
	t.Parallel()
	database := "DATABASE_URL=sqlite://" + filepath.Join(t.TempDir(), "x.db")
	start(t, []string{database}).ready()
	// It has never been ready, so nobody needs time to turn away from it.
	begin := time.Now()
	err := run(t.Context(), []string{"--listen=127.0.0.1:0", "--drain-delay=1m"}, []string{database}, io.Discard, nil)
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("a second process ended after %v", took)
	}
	if err == nil || errors.Is(err, service.ErrCut) || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second process = %v", err)
	}
}

func TestServe_AWriteWaitsForGatewaysThatFollowAnotherProcess(t *testing.T) {
	t.Parallel()
	database := "DATABASE_URL=" + postgrestest.NewEmpty(t)
	a := start(t, []string{database}, "--insecure-admin").ready()
	b := start(t, []string{database}, "--insecure-admin").ready()
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			default:
				b.do("GET", "/v1/changes?wait=500ms&gateway=gw-1&after="+b.cursor(), "")
			}
		}
	}()
	defer func() { close(end); <-done }()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, body := a.do("GET", "/v1/gateways", ""); strings.Contains(body, "gw-1") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the other process does not see the gateway")
		}
	}
	const path = "/v1/routes/organizationservice?wait=applied"
	for i, want := range []int{http.StatusCreated, http.StatusOK} {
		before := time.Now()
		status, body := a.do("PUT", path, `{"service":"organizationservice","active":true}`)
		if status != want || !strings.Contains(body, `"applied":{"of":1,"now":1,"behind":[],"setAside":[]}`) || time.Since(before) > 5*time.Second {
			t.Errorf("change %d = %d %s after %v", i, status, body, time.Since(before))
		}
	}
}

func TestServe_LinkLocalEndpointsAreTheOperatorsWord(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "x.db")), "SPECIALROUTES_INSECURE_ADMIN=true"}
	body := strings.Replace(half, "http://orgservice-new:8087", "http://169.254.169.254", 1)
	for _, test := range []struct {
		environ, flag string
		status        int
	}{
		{"", "", http.StatusUnprocessableEntity},
		{"", "--allow-link-local", http.StatusCreated},
		{"SPECIALROUTES_ALLOW_LINK_LOCAL=true", "", http.StatusOK},
		{"SPECIALROUTES_ALLOW_LINK_LOCAL=true", "--allow-link-local=false", http.StatusUnprocessableEntity},
	} {
		args := []string{"serve"}
		if test.flag != "" {
			args = append(args, test.flag)
		}
		p := start(t, append(environ, test.environ), args...).ready()
		if status, answer := p.do("PUT", bookPath, body); status != test.status {
			t.Errorf("with %q and %q a PUT is answered with %d %s, want %d", test.environ, test.flag, status, answer, test.status)
		}
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
}
