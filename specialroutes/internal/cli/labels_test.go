package cli_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"
)

func TestLabelsLiveThroughTheCommands(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	const org = "organizationservice/org-1"
	s.run("labels", "list").expect(t, 0).says(t, "INSTANCE")
	s.run("labels", "get", org).expect(t, 3).complains(t, "(no_labels)")
	s.run("labels", "set", org, "zone=alice", "version-", "--for=8h", "--why=a lane", "--dry-run").expect(t, 0).says(t, "add     the document")
	s.run("labels", "set", org, "zone=alice", "version-", "--for=8h", "--why=a lane", "--wait").expect(t, 0).
		says(t, org+": created, revision 1, ETag \"1.", "no gateway has asked", "changesWaiting")
	s.run("labels", "get", org).expect(t, 0).says(t, "instance  "+org, "version  hidden  -", "zone     set     alice")
	etag := strings.TrimSpace(s.run("labels", "get", org, "--etag").expect(t, 0).stdout)
	var got struct {
		Labels map[string]*string
		Ends   time.Time
	}
	s.run("labels", "get", org, "--output=json").expect(t, 0).json(t, &got)
	if left := time.Until(got.Ends); *got.Labels["zone"] != "alice" || got.Labels["version"] != nil || len(got.Labels) != 2 || left < 7*time.Hour || left > 8*time.Hour {
		t.Errorf("get --output json = %+v", got)
	}
	ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	s.run("labels", "set", org, "zone=bob=b", "--ends", ends, "--if-match", etag).expect(t, 0).says(t, "changed, revision 2")
	s.run("labels", "set", org, "zone=eve", "--ends", ends, "--if-match", etag).expect(t, 5)
	s.run("labels", "set", "licensingservice/a/b?%", "n=x", "--for=7d").expect(t, 0)
	s.run("labels", "list").expect(t, 0).says(t, "licensingservice/a/b?%     n=x         ", org+"  zone=bob=b  "+ends)
	if list := s.run("labels", "list", "--service=organizationservice").expect(t, 0).says(t, org); strings.Contains(list.stdout, "licensing") {
		t.Errorf("list of a service = %s", list.stdout)
	}
	s.run("labels", "clear", "licensingservice/a/b?%").expect(t, 0).says(t, "licensingservice/a/b?%: deleted, revision 4")
	s.run("labels", "clear", org, "--why=done").expect(t, 0)
	s.run("labels", "clear", org).expect(t, 3)
	history := s.run("labels", "history", org).expect(t, 0).says(t, "5         ", "deleted  done", "changed  -", "created  a lane")
	if n := strings.Count(history.stdout, "\n"); n != 4 {
		t.Errorf("the history has %d lines, want 4:\n%s", n, history.stdout)
	}
	s.run("labels", "history", org, "--limit=1").expect(t, 0).says(t, "there are more: --before 5")
}

func TestLabelsAreWaitedForAsRecordsAre(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	s.asGateway("gw-1", "")
	s.run("labels", "set", "svc/1", "zone=a", "--for=1h", "--wait").expect(t, 0).says(t, "applied on 1 of 1 gateways")
	s.run("labels", "clear", "svc/1", "--wait").expect(t, 0).says(t, "deleted", "applied on 1 of 1 gateways")
}

func TestMistakesAboutLabelsAreNamed(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	for _, test := range []struct {
		code int
		args string
		want string
	}{
		{2, "set svc zone=a --for=1h", "SERVICE/ID"},
		{2, "set svc/ zone=a --for=1h", "SERVICE/ID"},
		{2, "get /id", "SERVICE/ID"},
		{2, "clear svc", "SERVICE/ID"},
		{2, "history svc", "SERVICE/ID"},
		{2, "set svc/1 zone=a", "--for or --ends"},
		{2, "set svc/1 zone=a --for=-1h", "want more than nothing"},
		{2, "set svc/1 zone=a --for=0s", "want more than nothing"},
		{2, "set svc/1 zone=a --for=0d", "want more than nothing"},
		{2, "set svc/1 zone=a --for=1w", "want a time as 90m, 8h or 7d"},
		{2, "set svc/1 zone=a --for=1.5d", "want a time as 90m, 8h or 7d"},
		{2, "set svc/1 zone=a --for=9999999d", "want a time as 90m, 8h or 7d"},
		{2, "set svc/1 zone=a --for=1h --ends=2026-12-20T12:00:00Z", "give one of them"},
		{2, "set svc/1 zone --for=1h", "NAME- to hide it"},
		{2, "set svc/1 =a --for=1h", "has no name"},
		{2, "set svc/1 zone=a zone- --for=1h", "given before"},
		{2, "set svc/1 --for=1h", "want: "},
		{4, "set svc/1 zone=a --for=721h", "/ends: "},
		{4, "set svc/1 zone=a --for=31d", "/ends: "},
		{4, "set svc/1 zone=a --ends=tomorrow", "/ends: "},
		{4, "set svc/1 " + strings.Repeat("x", 64) + "=a zone=" + strings.Repeat("v", 256) + " --for=1h", "/labels/zone: "},
		{4, "set Svc/1 zone=a --for=1h", "service: "},
	} {
		s.run(append([]string{"labels"}, strings.Fields(test.args)...)...).expect(t, test.code).complains(t, test.want)
	}
	if list := s.run("labels", "list").expect(t, 0); strings.Count(list.stdout, "\n") != 1 {
		t.Errorf("after mistakes the list is %s", list.stdout)
	}
}

func TestLabelsThatCannotBeUsedAreWarnedOf(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	db, err := sql.Open("sqlite", s.file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `INSERT INTO instance_labels (service, instance, labels, ends) VALUES ('svc', '1', '{"a=b":"c"}', '2099-01-01T00:00:00.000000Z')`)
	if err != nil {
		t.Fatal(err)
	}
	s.run("labels", "list").expect(t, 0).says(t, "svc/1     broken").complains(t, "warning: svc/1: the labels cannot be used")
	s.run("labels", "get", "svc/1").expect(t, 5).complains(t, "(labels_broken)")
}
