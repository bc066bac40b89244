package consul_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/consul"
	"specialroutes.example/gateway/internal/registry/consul/consultest"
	"specialroutes.example/gateway/internal/registry/registrytest"
)

func TestRegistryOnTheFake(t *testing.T) {
	t.Parallel()
	registrytest.Exercise(t, func(t *testing.T, services map[string][]registry.Instance) registry.Registry {
		s := consultest.NewServer(t)
		var table []string
		for service, list := range services {
			var entries []*api.ServiceEntry
			for _, i := range list {
				host, port := split(t, i.Address)
				entries = append(entries, consultest.Entry(i.ID, host, port, consultest.Labels(i.Labels)))
			}
			s.Set(service, entries...)
			table = append(table, service)
		}
		return follow(t, consul.Options{Address: s.URL, Table: table})
	})
}

func split(t *testing.T, address string) (string, int) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	n, err2 := strconv.Atoi(port)
	if err != nil || err2 != nil {
		t.Fatal(address)
	}
	return host, n
}

func TestOnlyWhatPassesIsListed(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	s.Set("a",
		consultest.Entry("good", "10.0.0.1", 80),
		consultest.Entry("warned", "10.0.0.2", 80, consultest.Checks("passing", "warning")),
		consultest.Entry("critical", "10.0.0.3", 80, consultest.Checks("passing", "critical")),
		consultest.Entry("dead-node", "10.0.0.4", 80, consultest.Checks("critical", "passing")),
		consultest.Entry("in-maintenance", "10.0.0.5", 80, func(e *api.ServiceEntry) {
			e.Checks = append(e.Checks, &api.HealthCheck{CheckID: api.ServiceMaintPrefix + "x", Status: "critical"})
		}),
		consultest.Entry("of-another", "10.0.0.6", 80, func(e *api.ServiceEntry) { e.Service.Service = "b" }),
		consultest.Entry("without-checks", "10.0.0.7", 80, func(e *api.ServiceEntry) { e.Checks = nil }),
		&api.ServiceEntry{},
	)
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}})
	shows(t, r, "good", "without-checks")
}

func TestLabelsAreTagsWithTheMetaOverThem(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tags []string
		meta map[string]string
		want map[string]string
	}{
		"split at the first =":        {tags: []string{"version=1.0.0", "q=a=b"}, want: map[string]string{"version": "1.0.0", "q": "a=b"}},
		"a tag without = is itself":   {tags: []string{"primary"}, want: map[string]string{"primary": "primary"}},
		"later ones win":              {tags: []string{"v=1", "v=2"}, want: map[string]string{"v": "2"}},
		"meta wins over tags":         {tags: []string{"v=1", "z=a"}, meta: map[string]string{"v": "9"}, want: map[string]string{"v": "9", "z": "a"}},
		"an empty value is a value":   {tags: []string{"v="}, want: map[string]string{"v": ""}},
		"a label has a name":          {tags: []string{"=x", ""}, want: map[string]string{}},
		"case and blanks are kept":    {tags: []string{"V= 1 "}, want: map[string]string{"V": " 1 "}},
		"neither tags nor meta":       {want: map[string]string{}},
		"meta may have an empty text": {tags: []string{"v=1"}, meta: map[string]string{"v": ""}, want: map[string]string{"v": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := consultest.NewServer(t)
			s.Set("a", consultest.Entry("x", "10.0.0.1", 80, consultest.Labels(tt.meta, tt.tags...)))
			r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}})
			awaitReady(t, r)
			if got := r.Load().Instances("a")[0].Labels; !maps.Equal(got, tt.want) {
				t.Errorf("labels = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	entry := func(id, address string, port int, node string) *api.ServiceEntry {
		return consultest.Entry(id, address, port, consultest.OnNode("n", node))
	}
	s.Set("a",
		entry("own", "10.0.0.1", 80, "10.0.0.9"), entry("node", "", 80, "10.0.0.9"), entry("v6", "2001:db8::1", 80, ""),
		entry("v6-brackets", "[2001:db8::1]", 80, ""), entry("v6-node", "", 80, "::1"), entry("name", "host.example", 80, ""),
		entry("port-0", "10.0.0.1", 0, ""), entry("port-high", "10.0.0.1", 65536, ""), entry("port-below", "10.0.0.1", -1, ""),
		entry("nowhere", "", 80, ""), entry("url", "http://10.0.0.1", 80, ""), entry("host-and-port", "10.0.0.1:80", 80, ""),
		entry("twice", "10.0.0.1", 80, ""), entry("twice", "10.0.0.2", 80, ""),
		consultest.Entry("no-node", "", 80, func(e *api.ServiceEntry) { e.Node = nil }),
	)
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}})
	awaitReady(t, r)
	got := make(map[string]string)
	for _, i := range r.Load().Instances("a") {
		got[i.ID] = i.Address
	}
	want := map[string]string{
		"own": "10.0.0.1:80", "node": "10.0.0.9:80", "v6": "[2001:db8::1]:80", "v6-brackets": "[2001:db8::1]:80",
		"v6-node": "[::1]:80", "name": "host.example:80", "twice": "10.0.0.1:80",
	}
	if !maps.Equal(got, want) {
		t.Errorf("usable = %v, want %v", got, want)
	}
	if aside := r.Load().SetAside(); len(aside) != 8 {
		t.Errorf("set aside = %v, want 8", aside)
	}
}

func TestOneIDOnTwoNodesAreTwoInstances(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	s.Set("a", consultest.Entry("a", "10.0.0.1", 80, consultest.OnNode("n1", "")), consultest.Entry("a", "10.0.0.2", 80, consultest.OnNode("n2", "")))
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}})
	shows(t, r, "a@n1", "a@n2")
	s.Set("a", consultest.Entry("a", "10.0.0.1", 80, consultest.OnNode("n1", "")))
	shows(t, r, "a")
}

func TestAnUnbrokenWatchHoldsAtOnce(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	one, two := consultest.Entry("1", "10.0.0.1", 80), consultest.Entry("2", "10.0.0.2", 80)
	s.Set("a", one, two)
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}})
	shows(t, r, "1", "2")
	s.Set("a", two)
	shows(t, r, "2")
	s.Set("a")
	shows(t, r)
	s.Set("a", one, two)
	shows(t, r, "1", "2")
}

func TestTheServicesMayChange(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	for _, service := range []string{"a", "b", "c"} {
		s.Set(service, consultest.Entry("1", "10.0.0.1", 80))
	}
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}})
	for _, followed := range [][]string{{"b", "c"}, {"c", "a"}, {}, {"b"}} {
		r.Follow(followed)
		want := make(map[string]bool)
		for _, service := range append(followed, "a") {
			want[service] = true
		}
		eventually(t, fmt.Sprint("instances of ", want), func() bool {
			got := make(map[string]bool)
			for _, service := range r.Load().Services() {
				got[service] = true
			}
			return maps.Equal(got, want)
		})
	}
}

func TestQuestionsCarryWhatIsConfigured(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	s := consultest.NewServer(t)
	s.Set("a", consultest.Entry("1", "10.0.0.1", 80))
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}, TokenFile: token, Datacenter: "dc7", Stale: true})
	awaitReady(t, r)
	q := s.Queries()[0]
	if q.Token != "first" || q.Datacenter != "dc7" || !q.Stale || q.Index != 0 {
		t.Errorf("the first question is %+v", q)
	}
	write("second\n")
	s.SetIndex(200)
	s.SetIndex(201)
	eventually(t, "the second token is sent", func() bool { all := s.Queries(); return all[len(all)-1].Token == "second" })
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	s.SetIndex(300)
	eventually(t, "an error", func() bool { return strings.Contains(r.Status().LastError, "token file") })
	shows(t, r, "1")
}

func TestAnAnswerThatIsTooStaleIsAskedOfTheLeader(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	s.Set("a", consultest.Entry("1", "10.0.0.1", 80))
	s.SetHeader("X-Consul-LastContact", "11000")
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}, Stale: true})
	shows(t, r, "1")
	if q := s.Queries(); !q[0].Stale || q[1].Stale {
		t.Errorf("asked %+v, want stale and then not", q)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := consul.New(consul.Options{Address: "https://127.0.0.1:1", CAFile: missing}); err == nil {
		t.Error("a CA file that is missing is taken")
	}
	if err := os.WriteFile(missing, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := consul.New(consul.Options{Address: "https://127.0.0.1:1", CAFile: missing}); err == nil {
		t.Error("a CA file without a certificate is taken")
	}
	s, ca := consultest.NewTLSServer(t)
	s.Set("a", consultest.Entry("1", "10.0.0.1", 80))
	shows(t, follow(t, consul.Options{Address: s.URL, CAFile: ca, Table: []string{"a"}}), "1")
	stranger := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}})
	eventually(t, "an error of the certificate", func() bool { return strings.Contains(stranger.Status().LastError, "certificate") })
	if got := stranger.Status().Source; got != registry.None {
		t.Errorf("the source is %s", got)
	}
}

func TestReadyWaitsForEveryServiceOfTheTable(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	s.Set("a", consultest.Entry("1", "10.0.0.1", 80))
	s.Instead(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/b") {
			http.Error(w, "No cluster leader", http.StatusInternalServerError)
			return
		}
		w.Header().Set("X-Consul-LastContact", "0")
		w.Header().Set("X-Consul-Index", "7")
		_, _ = io.WriteString(w, "[]")
	})
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a", "b"}})
	eventually(t, "errors", func() bool { return r.Status().Errors > 2 })
	select {
	case <-r.Ready():
		t.Fatal("ready without an answer about b")
	default:
	}
	s.Instead(nil)
	awaitReady(t, r)
	if st := r.Status(); st.Source != registry.Live || time.Since(st.Since) > time.Minute {
		t.Errorf("status = %+v", st)
	}
}
