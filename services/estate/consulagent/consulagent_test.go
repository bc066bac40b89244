package consulagent_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"specialroutes.example/services/estate/consulagent"
	"specialroutes.example/services/estate/consulagent/consulagenttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends one request to the agent.
func ask(t *testing.T, a *consulagent.Agent, method, path, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.Address()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, text, err)
	}
	return string(text)
}

func TestAnAgentComesBackEmptyAtTheSameAddress(t *testing.T) {
	a := consulagenttest.Start(t)
	before := a.Address()
	for _, end := range []func(context.Context) error{a.Kill, a.Stop} {
		ask(t, a, http.MethodPut, "/v1/agent/service/register", `{"Name":"a","Port":1}`)
		if got := ask(t, a, http.MethodGet, "/v1/agent/services", ""); !strings.Contains(got, `"a"`) {
			t.Fatalf("a registered service is not listed: %s", got)
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if res, err := http.Get("http://" + before + "/"); err == nil {
			res.Body.Close()
			t.Fatal("it answers though it was ended")
		}
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a.Address() != before {
			t.Errorf("the address is %s, was %s", a.Address(), before)
		}
		if got := ask(t, a, http.MethodGet, "/v1/agent/services", ""); strings.Contains(got, `"a"`) {
			t.Errorf("it has kept a service: %s", got)
		}
	}
}

func TestAProgramThatIsNoConsulIsTold(t *testing.T) {
	program := filepath.Join(t.TempDir(), "consul")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho no consul at all >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := consulagent.Start(t.Context(), consulagent.Options{Binary: program})
	if err == nil || !strings.Contains(err.Error(), "no consul at all") {
		t.Errorf("got %v, want what the program said", err)
	}
}

func TestAProgramThatIsNamedAndMissingIsNotReplacedByAnother(t *testing.T) {
	t.Setenv("CONSUL_BINARY", filepath.Join(t.TempDir(), "nothing"))
	if _, err := consulagent.Find(); !errors.Is(err, consulagent.ErrNotInstalled) {
		t.Errorf("Find: %v, want ErrNotInstalled", err)
	}
}
