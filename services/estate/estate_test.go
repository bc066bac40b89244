package estate_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"go.uber.org/goleak"

	"specialroutes.example/services/estate"
	"specialroutes.example/services/service"
)

// The test binary stands in for the programs: it is linked under their names.
func TestMain(m *testing.M) {
	if stub(filepath.Base(os.Args[0])) {
		return
	}
	goleak.VerifyTestMain(m)
}

// stubs returns a directory of stand-ins for the estate's programs.
func stubs(t *testing.T) estate.Binaries {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range append(serviceNames(), estate.Gateway, parentName) {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return estate.BinariesIn(dir)
}

func serviceNames() []string {
	return []string{estate.SpecialRoutes, estate.OrgServiceOld, estate.OrgServiceNew, estate.LicensingService}
}

// start starts an estate that is stopped, at the latest, when the test ends.
func start(t *testing.T, o estate.Options) *estate.Estate {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	e, err := estate.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range e.Processes() {
			p.Kill()
		}
	})
	return e
}

func stopContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// get returns the body of an answer, or "" if nobody answers.
func get(url string) string {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return string(body)
}

// alive reports whether a process exists and is no zombie of ours.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestStart_ReturnsWhenEveryProcessIsReady(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	e := start(t, estate.Options{Bin: stubs(t), Gateways: 2, Output: &told})
	urls := map[string]string{
		"gateway": e.GatewayURL(0), "gateway-1": e.GatewayURL(1), "specialroutes": e.SpecialRoutesURL(),
		"orgservice-old": e.OldURL(), "orgservice-new": e.NewURL(), "licensingservice": e.LicensingURL(),
	}
	if len(e.Processes()) != len(urls) {
		t.Errorf("%d processes, want %d", len(e.Processes()), len(urls))
	}
	seen := map[string]bool{}
	for name, url := range urls {
		if got := get(url + "/whoami"); got != name {
			t.Errorf("%s is answered by %q, want %s", url, got, name)
		}
		if !strings.Contains(told.String(), name+" is ready on "+url+"\n") {
			t.Errorf("Output lacks %s: %s", name, &told)
		}
		if port, err := strconv.Atoi(url[strings.LastIndex(url, ":")+1:]); err != nil || port >= 32768 || seen[url] {
			t.Errorf("%s is on %s, want a port of its own, below those of outgoing connections", name, url)
		}
		seen[url] = true
	}
	var pids []int
	for _, p := range e.Processes() {
		pids = append(pids, p.PID())
	}
	if err := e.Stop(stopContext(t)); err != nil {
		t.Errorf("Stop = %v, want nil", err)
	}
	for i, p := range e.Processes() {
		if alive(pids[i]) || p.PID() != 0 || p.ExitCode() != 0 {
			t.Errorf("%s: alive %t, PID %d, exit code %d after Stop", p.Name(), alive(pids[i]), p.PID(), p.ExitCode())
		}
	}
	for name, url := range urls {
		if conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
			_ = conn.Close()
			t.Errorf("the port of %s is still open", name)
		}
	}
	if err := e.Stop(stopContext(t)); err != nil {
		t.Errorf("a second Stop = %v, want nil", err)
	}
}

func TestStart_GivesTheGatewayTheBooksTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := start(t, estate.Options{Dir: dir, Bin: stubs(t), GatewayYAML: "timeouts: {idle: 5s}\nexposeRoute: false\n"})
	text, err := os.ReadFile(filepath.Join(dir, "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"prefix: /api/organization", "service: organizationservice", "prefix: /api/licensing", "- Set-Cookie",
		"response: 2.5s", "idle: 5s", "exposeRoute: false", e.SpecialRoutesURL(),
		"address: " + strings.TrimPrefix(e.OldURL(), "http://"), "address: " + strings.TrimPrefix(e.LicensingURL(), "http://"),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the configuration lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), strings.TrimPrefix(e.NewURL(), "http://")) {
		t.Errorf("the configuration leads to the new service, which only a record may do:\n%s", text)
	}
	if _, err := estate.Start(t.Context(), estate.Options{Dir: t.TempDir(), Bin: stubs(t), GatewayYAML: "a: [b"}); err == nil {
		t.Error("Start with broken GatewayYAML = nil, want an error")
	}
}

func TestStart_GivesTheGatewayFurtherInstancesWithTheirLabels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := start(t, estate.Options{Dir: dir, Bin: stubs(t), Instances: []estate.Instance{
		{ID: "org-a", Service: estate.OrganizationName, Labels: map[string]string{"version": "1.10"}},
		{ID: "org-b", Service: "elsewhere"},
	}})
	text, err := os.ReadFile(filepath.Join(dir, "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Instances map[string][]struct {
			ID, Address string
			Labels      map[string]string
		}
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ service, id, version string }{
		{estate.OrganizationName, estate.OrgServiceOld, ""}, {estate.OrganizationName, "org-a", "1.10"}, {"elsewhere", "org-b", ""},
	} {
		url := e.Process(want.id).URL()
		found := false
		for _, i := range c.Instances[want.service] {
			found = found || i.ID == want.id && "http://"+i.Address == url && i.Labels["version"] == want.version
		}
		if !found || get(url+"/whoami") == "" {
			t.Errorf("%s of %s, which serves on %s, is not listed: %+v", want.id, want.service, url, c.Instances)
		}
	}
}

func TestStart_RefusesADirectoryInUse(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), stubs(t)
	e := start(t, estate.Options{Dir: dir, Bin: bin})
	before, err := os.ReadFile(filepath.Join(dir, "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := estate.Start(t.Context(), estate.Options{Dir: dir, Bin: bin}); !errors.Is(err, estate.ErrInUse) {
		t.Errorf("a second estate in %s: %v, want ErrInUse", dir, err)
	}
	if err := estate.CheckDir(dir); !errors.Is(err, estate.ErrInUse) {
		t.Errorf("CheckDir = %v, want ErrInUse", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "gateway.yaml")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the configuration was overwritten, %v", err)
	}
	if err := e.Stop(stopContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := estate.CheckDir(dir); err != nil {
		t.Errorf("CheckDir after Stop = %v", err)
	}
}

func TestStart_ShowsTheLogOfTheProcessThatFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := estate.Start(t.Context(), estate.Options{
		Dir: dir, Bin: stubs(t), Env: map[string][]string{estate.LicensingService: {"STUB=fail"}},
	})
	var failed *estate.StartError
	if !errors.As(err, &failed) || failed.Process != estate.LicensingService {
		t.Fatalf("Start = %v, want a StartError of %s", err, estate.LicensingService)
	}
	for _, want := range []string{"code 1", "the stub was told to fail"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	for _, name := range serviceNames() {
		if pid := stubPID(dir, name); pid != 0 && alive(pid) {
			t.Errorf("%s still runs", name)
		}
	}
}

func TestStart_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := estate.Start(ctx, estate.Options{
		Dir: dir, Bin: stubs(t), Env: map[string][]string{estate.OrgServiceNew: {"STUB=never-ready"}},
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start = %v, want the context's error", err)
	}
	for _, name := range serviceNames() {
		if pid := stubPID(dir, name); pid != 0 && alive(pid) {
			t.Errorf("%s still runs", name)
		}
	}
}

func TestProcess_StopsAndStartsAgain(t *testing.T) {
	t.Parallel()
	e := start(t, estate.Options{Bin: stubs(t)})
	p, before := e.Process(estate.OrgServiceOld), 0
	if before = p.PID(); before == 0 || p.ExitCode() != -1 {
		t.Fatalf("PID %d, exit code %d of a running process", before, p.ExitCode())
	}
	if err := p.Start(t.Context()); err != nil || p.PID() != before {
		t.Errorf("Start of a running process = %v, PID %d, want it left alone", err, p.PID())
	}
	if err := p.Stop(stopContext(t)); err != nil || p.ExitCode() != 0 || get(e.OldURL()+"/whoami") != "" {
		t.Errorf("Stop = %v, exit code %d", err, p.ExitCode())
	}
	if err := p.Start(t.Context()); err != nil || p.PID() == before || get(e.OldURL()+"/whoami") != p.Name() {
		t.Errorf("Start again = %v, PID %d", err, p.PID())
	}
	log, err := os.ReadFile(p.LogPath())
	if err != nil || bytes.Count(log, []byte("listening")) != 2 {
		t.Errorf("log = %s, %v, want that of both runs", log, err)
	}
	p.Kill()
	if p.ExitCode() != -1 || p.PID() != 0 {
		t.Errorf("exit code %d, PID %d after Kill", p.ExitCode(), p.PID())
	}
	if err := e.Stop(stopContext(t)); err != nil {
		t.Errorf("Stop after a Kill = %v, want nil", err)
	}
	if e.Process("nobody") != nil {
		t.Error("there is a process of a name that nobody has")
	}
}

func TestProcess_IsKilledWhenItDoesNotStop(t *testing.T) {
	t.Parallel()
	e := start(t, estate.Options{Bin: stubs(t), Env: map[string][]string{estate.OrgServiceNew: {"STUB=deaf"}}})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	pid := e.Process(estate.OrgServiceNew).PID()
	err := e.Stop(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "orgservice-new had to be killed") {
		t.Errorf("Stop = %v, want the kill told", err)
	}
	if alive(pid) {
		t.Error("it still runs")
	}
}

func TestStop_TellsOfAProcessThatEndedByItself(t *testing.T) {
	t.Parallel()
	e := start(t, estate.Options{Bin: stubs(t)})
	p := e.Process(estate.LicensingService)
	get(e.LicensingURL() + "/crash")
	<-p.Exited()
	var exit *estate.ExitError
	if err := e.Stop(stopContext(t)); !errors.As(err, &exit) || exit.Process != p.Name() || exit.Code != 7 || exit.Asked {
		t.Errorf("Stop = %v, want an ExitError of %s with code 7", err, p.Name())
	}
}

func TestCheckPorts_NamesThePortInUse(t *testing.T) {
	t.Parallel()
	// If it is in use already, so much the better.
	if ln, err := net.Listen("tcp", "127.0.0.1:8087"); err == nil {
		defer ln.Close()
	}
	for name, err := range map[string]error{
		"CheckPorts": estate.CheckPorts(),
		"Start": func() error {
			_, err := estate.Start(t.Context(), estate.Options{Dir: t.TempDir(), FixedPorts: true})
			return err
		}(),
	} {
		var listen *service.ListenError
		want := "the orgservice-new port cannot be opened: 127.0.0.1:8087 is in use by another process"
		if !errors.As(err, &listen) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s = %v, want %q", name, err, want)
		}
	}
}

func TestProcesses_EndWithTheirParent(t *testing.T) {
	t.Parallel()
	if !diesWithParent {
		t.Skip("this system cannot end a process together with its parent")
	}
	bin, dir := stubs(t), t.TempDir()
	parent := exec.Command(bin.Path(parentName), dir, filepath.Dir(bin.Path(parentName)))
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil { // its estate is up
		t.Error(err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	for _, name := range append(serviceNames(), estate.Gateway) {
		pid := stubPID(dir, name)
		if pid == 0 {
			t.Fatalf("%s did not run", name)
		}
		for deadline := time.Now().Add(10 * time.Second); running(pid); {
			if time.Now().After(deadline) {
				t.Fatalf("%s outlived its parent", name)
			}
		}
	}
}
