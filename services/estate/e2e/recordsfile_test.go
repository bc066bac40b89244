package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fileLab is a lab whose gateway keeps its records in a file that the test knows,
// and whose source of records is the test.
func fileLab(t *testing.T) (*lab, *source, string) {
	t.Helper()
	src := newSource(t)
	alternate := newUpstream(t, "new", nil)
	src.publish(nil, twoVariants(labService, alternate.URL, true))
	file := filepath.Join(t.TempDir(), "records.json")
	l := newLab(t, labOptions{records: src.URL, new: alternate, config: map[string]string{
		"records": fmt.Sprintf("{url: [%q], file: %q}", src.URL, file),
	}})
	l.answers(t, "new")
	return l, src, file
}

// readySays asks the gateway where its records come from.
func (l *lab) readySays(t *testing.T, want string) {
	t.Helper()
	if got := call(t, "GET", l.admin+"/readyz", nil, nil); !strings.Contains(string(got.body), want) {
		t.Errorf("readyz does not say %s: %s", want, got.body)
	}
}

func TestAGatewayKilledAndStartedWithoutSpecialRoutesRoutesByItsFile(t *testing.T) {
	t.Parallel()
	l, src, file := fileLab(t)
	poll(t, 5*time.Second, "the file is written", func() error {
		info, err := os.Stat(file)
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Fatalf("the file's mode is %o, want 600", info.Mode().Perm())
		}
		return err
	})
	l.gateway.kill()
	src.Close()
	began := time.Now()
	l.startGateway(t)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the gateway was ready after %v, but it has its file", took)
	}
	if got := call(t, "GET", l.base+"/x", nil, nil); string(got.body) != "new" {
		t.Errorf("body = %q, want the alternate's", got.body)
	}
	l.readySays(t, "file")
}

func TestAFileThatCannotBeUsedIsLeftOut(t *testing.T) {
	t.Parallel()
	l, _, file := fileLab(t)
	l.gateway.stop(t)
	good := readFile(t, file)
	for name, content := range map[string]string{
		"empty":       "",
		"cut short":   good[:len(good)/2],
		"one changed": strings.Replace(good, `"active":true`, `"active":true `, 1),
		"zeros":       strings.Repeat("\x00", len(good)),
		"no JSON":     "garbage\n",
	} {
		t.Run(name, func(t *testing.T) {
			if content == good {
				t.Fatal("the file was not damaged")
			}
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			l.startGateway(t)
			l.answers(t, "new") // by the source
			l.readySays(t, "live")
			l.gateway.stop(t)
			if now := readFile(t, file); !strings.Contains(now, labService) {
				t.Errorf("the damaged file was not replaced: %.300q", now)
			}
		})
	}
}
