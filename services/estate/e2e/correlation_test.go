package e2e_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

const correlationHeader = "tmx-correlation-id"

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// wantOneCorrelation returns the correlation ID of an answer, which must be there
// once.
func wantOneCorrelation(t testing.TB, got answer) string {
	t.Helper()
	values := got.header.Values(correlationHeader)
	if len(values) != 1 {
		t.Fatalf("%s on the answer = %q, want it once", correlationHeader, values)
	}
	return values[0]
}

func TestACorrelationIDOfOneCleanLineIsKept(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for _, id := range []string{"a", "TX-1", "A.z_9:/+=@-", strings.Repeat("x", 128), "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"} {
		l.old.reset()
		got := call(t, "GET", l.base+"/x", nil, headers{{correlationHeader, id}})
		if answered := wantOneCorrelation(t, got); answered != id {
			t.Errorf("sent %q, the answer has %q", id, answered)
		}
		if values := l.old.only(t).header.Values(correlationHeader); !equal(values, []string{id}) {
			t.Errorf("sent %q, the upstream saw %q", id, values)
		}
	}
}

func TestAnyOtherCorrelationIDIsReplacedAndNeverRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for _, test := range []struct {
		name  string
		lines []string
	}{
		{"none", nil},
		{"empty", []string{correlationHeader + ":"}},
		{"two lines", []string{correlationHeader + ": one", correlationHeader + ": two"}},
		{"129 characters", []string{correlationHeader + ": " + strings.Repeat("x", 129)}},
		{"a space inside", []string{correlationHeader + ": a b"}},
		{"a comma", []string{correlationHeader + ": a,b"}},
		{"a quotation mark", []string{correlationHeader + `: a"b`}},
		{"a byte above ASCII", []string{correlationHeader + ": a\xe4"}},
		{"markup", []string{correlationHeader + ": <script>"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l.old.reset()
			got := rawGet(t, l.data, labPrefix+"/x", test.lines...)
			if got.status != 200 {
				t.Fatalf("status = %d, want 200: it is never a refusal", got.status)
			}
			id := wantOneCorrelation(t, got)
			if !uuid.MatchString(id) {
				t.Errorf("the answer has %q, want a new UUID", id)
			}
			if values := l.old.only(t).header.Values(correlationHeader); !equal(values, []string{id}) {
				t.Errorf("the upstream saw %q, the client %q", values, id)
			}
			line := l.accessLine(t, id)
			if line["correlationReplaced"] != true {
				t.Errorf("correlationReplaced in the log = %v", line["correlationReplaced"])
			}
		})
	}
}

func TestTwoCallsGetDifferentCorrelationIDs(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	first := wantOneCorrelation(t, call(t, "GET", l.base+"/x", nil, nil))
	second := wantOneCorrelation(t, call(t, "GET", l.base+"/x", nil, nil))
	if first == second {
		t.Errorf("both calls got %s", first)
	}
}

func TestTheCorrelationIDIsSetOnceOverTheUpstreams(t *testing.T) {
	t.Parallel()
	alternate := newUpstream(t, "new", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["tmx-correlation-id"] = []string{"of the upstream", "and another"}
		w.Header()["Tmx-Correlation-Id"] = []string{"a third"}
	})
	l := newLab(t, labOptions{new: alternate})
	l.toNew(t)
	got := call(t, "GET", l.base+"/x", nil, headers{{correlationHeader, "ours"}})
	if id := wantOneCorrelation(t, got); id != "ours" {
		t.Errorf("the answer has %q, want ours", id)
	}
}

// organizationAnswer is what an organization service answers to licensing.
const organizationAnswer = `{"id":"` + bookOrganization + `","name":"customer-crm-co","contactName":"NEW::Mark Balster",` +
	`"contactEmail":"mark.balster@custcrmco.com","contactPhone":"823-555-1212"}`

func answerOrganization(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Set-Cookie", "of=the-upstream")
	_, _ = io.WriteString(w, organizationAnswer)
}

func TestTheHeadersOfTheEstateGoThroughLicensing(t *testing.T) {
	est, r := demo(t)
	alternate := newUpstream(t, "new", answerOrganization)
	r.put(t, book{organization, "Y", alternate.URL, 0})
	sent := headers{
		{correlationHeader, "through-licensing-1"},
		{"tmx-auth-token", "token-1"},
		{"Authorization", "Bearer b-1"},
		{"tmx-user-id", "user-1"},
		{"tmx-org-id", "org-1"},
	}
	got := call(t, "GET", est.GatewayURL(0)+licensingPath, nil, sent)
	if from, err := who(got); from != "NEW" {
		t.Fatalf("%q, %v", from, err)
	}
	if id := wantOneCorrelation(t, got); id != "through-licensing-1" {
		t.Errorf("the answer has %s = %q", correlationHeader, id)
	}
	saw := alternate.only(t)
	if want := "/v1/organizations/" + bookOrganization; saw.target != want || saw.method != "GET" {
		t.Errorf("the organization was asked %s %s, want GET %s", saw.method, saw.target, want)
	}
	for _, field := range sent {
		if values := saw.header.Values(field[0]); !equal(values, []string{field[1]}) {
			t.Errorf("%s = %q at the organization, want %q", field[0], values, field[1])
		}
	}
	if prefix := saw.header.Get("X-Forwarded-Prefix"); prefix != "/api/organization" {
		t.Errorf("X-Forwarded-Prefix = %q, want that of the second hop", prefix)
	}
}

func TestACorrelationIDMadeByTheGatewayGoesThroughLicensing(t *testing.T) {
	est, r := demo(t)
	alternate := newUpstream(t, "new", answerOrganization)
	r.put(t, book{organization, "Y", alternate.URL, 0})
	id := wantOneCorrelation(t, call(t, "GET", est.GatewayURL(0)+licensingPath, nil, nil))
	if values := alternate.only(t).header.Values(correlationHeader); !equal(values, []string{id}) || !uuid.MatchString(id) {
		t.Errorf("the answer has %q, the organization saw %q", id, values)
	}
}

func TestTheDemoKeepsCookiesFromTheServicesAndAuthorizationNot(t *testing.T) {
	est, r := demo(t)
	alternate := newUpstream(t, "new", answerOrganization)
	r.put(t, book{organization, "Y", alternate.URL, 0})
	got := call(t, "GET", est.GatewayURL(0)+organizationPath, nil,
		headers{{"Cookie", "a=b"}, {"Cookie", "c=d"}, {"Authorization", "Bearer b"}})
	saw := alternate.only(t)
	if values := saw.header.Values("Cookie"); len(values) != 0 {
		t.Errorf("Cookie = %q at the upstream; it is a sensitive header of the demo", values)
	}
	if values := saw.header.Values("Authorization"); !equal(values, []string{"Bearer b"}) {
		t.Errorf("Authorization = %q at the upstream", values)
	}
	if values := got.header.Values("Set-Cookie"); len(values) != 0 {
		t.Errorf("Set-Cookie = %q on the answer; it is a sensitive header of the demo", values)
	}
}
