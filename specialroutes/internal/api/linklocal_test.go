package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/specialroutes/internal/store"
)

const (
	metadata      = "http://169.254.169.254/latest"
	bookMetadata  = `{"serviceName":"organizationservice","active":"Y","endpoint":"` + metadata + `","weight":5}`
	otherEndpoint = `{"serviceName":"organizationservice","active":"Y","endpoint":"http://new","weight":5}`
)

// splitMetadata is split with an endpoint that is refused unless allowed.
var splitMetadata = strings.Replace(split, "http://new", metadata, 1)

func allowLinkLocal(o *Options) { o.AllowLinkLocal = true }

// waysIn are all the ways in which an endpoint comes into a record that had it in
// revision 1 and has it no longer.
var waysIn = []struct{ name, method, path, body, pointer string }{
	{"the book's PUT", "PUT", bookPath, bookMetadata, "/endpoint"},
	{"a PUT", "PUT", routePath, splitMetadata, "/variants/1/endpoint"},
	{"a dry run of it", "PUT", routePath + "?dryRun=true", splitMetadata, "/variants/1/endpoint"},
	{"a rollback", "POST", routePath + "/rollback", `{"revision":1}`, "/revision"},
	{"a dry run of it", "POST", routePath + "/rollback?dryRun=true", `{"revision":1}`, "/revision"},
	{"an explanation", "POST", "/v1/explain", `{"service":"organizationservice","request":{"draw":10},"record":` + splitMetadata + `}`, "/record/variants/1/endpoint"},
}

func TestLinkLocal_IsRefusedUnlessAllowed(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		allowing, refusing := start(t, s, allowLinkLocal), start(t, s)
		allowing.expect(http.StatusCreated, "PUT", routePath, splitMetadata)
		for _, way := range waysIn {
			allowing.expect(http.StatusOK, "PUT", bookPath, otherEndpoint)
			p := refusing.expect(http.StatusUnprocessableEntity, way.method, way.path, way.body).problem(t)
			if got := p.pointers(); !slices.Equal(got, []string{way.pointer}) {
				t.Errorf("%s points at %q, want %s", way.name, got, way.pointer)
			}
			if record := refusing.expect(http.StatusOK, "GET", routePath, "").body; strings.Contains(record, metadata) {
				t.Errorf("%s was refused and stored: %s", way.name, record)
			}
			if a := allowing.expect(http.StatusOK, way.method, way.path, way.body); !strings.Contains(a.body, metadata) {
				t.Errorf("%s, allowed, answers %s", way.name, a.body)
			}
		}
	})
}

func TestLinkLocal_ARecordFromBeforeTheSettingIsShownAndCanBeSwitchedOff(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		start(t, s, allowLinkLocal).expect(http.StatusCreated, "PUT", routePath, splitMetadata)
		srv := start(t, s)
		srv.expect(http.StatusOK, "GET", routePath, "")
		e := ask(t, srv, `{"service":"organizationservice","request":{"draw":10}}`)
		if e.Variant != "new" || e.Target.Endpoint != metadata {
			t.Errorf("explained as %+v, want the record that is stored", e)
		}
		off := `{"active":false}`
		for _, refused := range [][2]string{{"/weights", `{"old":5,"new":5}`}, {"/active", `{"active":true}`}} {
			p := srv.expect(http.StatusUnprocessableEntity, "PUT", routePath+refused[0], refused[1]).problem(t)
			if got := p.pointers(); !slices.Equal(got, []string{"/variants/1/endpoint"}) {
				t.Errorf("PUT %s %s points at %q", refused[0], refused[1], got)
			}
		}
		srv.expect(http.StatusOK, "PUT", routePath+"/active?dryRun=true", off)
		srv.expect(http.StatusOK, "PUT", routePath+"/active", off)
		srv.expect(http.StatusOK, "PUT", bookPath, otherEndpoint)
		srv.expect(http.StatusOK, "DELETE", routePath, "")
	})
}
