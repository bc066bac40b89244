package e2e_test

import (
	"net/url"
	"strings"
	"testing"
)

func TestAPathThatTwoReadersCouldReadDifferentlyIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.toNew(t)
	for _, path := range []string{
		"/%zz", "/%", "/%2", "/a%2", "/%g1", "/%1", // bad triplets
		"/a\x80b", "/\xff", "/a\x7fb", "/a\x01b", "/gr\xc3\xbc\xc3\x9fe", // bytes outside 0x21-0x7E
		"/a#b", "/#", // a fragment
		`/a\b`, `/a\..\b`, "/a%5Cb", "/%5c", "/%5c..%5c", // backslashes
		"/%00", "/a%00b",
		"/.", "/..", "/./a", "/../a", "/a/.", "/a/..", "/a/./b", "/a/../b", // dot segments
		"/%2e", "/%2E%2e/a", "/.%2e/a", "/%2e./a", "/a/%2E/b",
		"/..;/a", "/.;x/a", "/..;a=b", "/%2e%2e;x/a",
		"/a%2F..%2Fb", "/a%2f..", "/..%2Fa", "/a%2F.%2Fb", "/%2e%2e%2fa", "/a%2F%2e%2E%2fb", "/a/..%2f..;x",
	} {
		t.Run(url.PathEscape(path), func(t *testing.T) {
			got := rawGet(t, l.data, labPrefix+path)
			if doc := wantProblem(t, got, 400); doc.CorrelationID != wantOneCorrelation(t, got) {
				t.Errorf("correlationId = %q in the problem, %q in the header", doc.CorrelationID, wantOneCorrelation(t, got))
			}
		})
	}
	// The same before and inside the prefix.
	for _, target := range []string{
		"/x/.." + labPrefix + "/a", "/%2e%2e" + labPrefix + "/a", "/." + labPrefix, "/api/../api/lab/a",
	} {
		t.Run(url.PathEscape(target), func(t *testing.T) {
			wantProblem(t, rawGet(t, l.data, target), 400)
		})
	}
	l.new.wantNone(t)
	l.old.wantNone(t)
}

func TestAPrefixEndsAtASegmentBorderAndIsMatchedByBytes(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for _, target := range []string{
		"/", "/api", "/api/", "/api/la", "/api/labs", "/api/lab-x", "/api/lab.x", "/api/lab%2Fx", "/API/lab/x", "/api/Lab/x",
		"/%61pi/lab/x", "/api/l%61b/x", "/api%2Flab/x", "//api/lab/x", "/api//lab/x", "/api/lab;x/y", "/x/api/lab",
	} {
		t.Run(target, func(t *testing.T) {
			wantProblem(t, rawGet(t, l.data, target), 404)
		})
	}
	l.old.wantNone(t)
}

func TestTheAlternateIsReachedByNoPath(t *testing.T) {
	est, r := demo(t)
	r.put(t, bookRecord(est, 10)) // so that the draw sends nobody there either
	gateway := strings.TrimPrefix(est.GatewayURL(0), "http://")
	newAddr := strings.TrimPrefix(est.NewURL(), "http://")
	organizations := "/v1/organizations/" + bookOrganization
	requests := map[string]string{
		"by its name":                   "GET /orgservice-new" + organizations,
		"by its name below api":         "GET /api/orgservice-new" + organizations,
		"by its port":                   "GET /api/" + newAddr + organizations,
		"without a prefix":              "GET " + organizations,
		"below organization":            "GET /api/organization/orgservice-new" + organizations,
		"as a URL in the path":          "GET /api/organization/" + est.NewURL() + organizations,
		"in absolute form":              "GET " + est.NewURL() + organizations,
		"in absolute form, with prefix": "GET " + est.NewURL() + organizationPath,
		"with user info":                "GET /api/organization@" + newAddr + organizations,
	}
	for name, line := range requests {
		t.Run(name, func(t *testing.T) {
			got := raw(t, gateway, line+" HTTP/1.1\r\nHost: "+newAddr+"\r\nConnection: close\r\n\r\n")
			if strings.Contains(string(got.body), "NEW::") {
				t.Errorf("%s reached it: %s", line, got.body)
			}
		})
	}
	t.Run("by a header", func(t *testing.T) {
		for _, line := range []string{
			"Host: " + newAddr, "X-Forwarded-Host: " + newAddr, "X-Original-URL: " + est.NewURL(), "X-Rewrite-URL: /orgservice-new",
			"X-Route-Variant: alternate", "X_Route_Variant: alternate", "Route-Override: alternate", "X-Forwarded-Prefix: /orgservice-new",
			"X-Route-Reason: override", "Forwarded: host=" + newAddr,
		} {
			hostLine := "Host: " + gateway + "\r\n"
			if strings.HasPrefix(line, "Host:") {
				hostLine = ""
			}
			got := raw(t, gateway, "GET "+organizationPath+" HTTP/1.1\r\n"+hostLine+line+"\r\nConnection: close\r\n\r\n")
			if strings.Contains(string(got.body), "NEW::") {
				t.Errorf("%q reached it: %s", line, got.body)
			}
		}
	})
	t.Run("by CONNECT", func(t *testing.T) {
		got := raw(t, gateway, "CONNECT "+newAddr+" HTTP/1.1\r\nHost: "+newAddr+"\r\nConnection: close\r\n\r\n")
		if got.status < 400 || got.status > 499 {
			t.Errorf("status = %d, want a refusal", got.status)
		}
	})
}
