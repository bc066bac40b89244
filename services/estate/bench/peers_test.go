package bench

import (
	"regexp"
	"strings"
	"testing"
)

func TestThePeersDoTheGatewaysWork(t *testing.T) {
	at := addresses{old: "127.0.0.1:1001", new: "127.0.0.1:1002", nginx: "127.0.0.1:1003", haproxy: "127.0.0.1:1004"}
	placeholder := regexp.MustCompile(`\b(DIR|NAME|OLD|NEW|LISTEN|PREFIX)\b`)
	for name, test := range map[string]struct {
		config string
		parts  []string
	}{
		"nginx": {nginxConfig("/d", at), []string{"listen 127.0.0.1:1003 ", "server 127.0.0.1:1001;", "server 127.0.0.1:1002;",
			"access_log /d/nginx.access", "rewrite ^/api/organization(/.*)$ $1", "tmx-correlation-id"}},
		"haproxy": {haproxyConfig("/d", at), []string{"bind 127.0.0.1:1004", "server old 127.0.0.1:1001 weight 50",
			"server new 127.0.0.1:1002 weight 50", "log /d/log.sock", `/api/organization(/.*) \1`, "tmx-correlation-id"}},
	} {
		for _, part := range test.parts {
			if !strings.Contains(test.config, part) {
				t.Errorf("%s: no %q in\n%s", name, part, test.config)
			}
		}
		if left := placeholder.FindString(test.config); left != "" {
			t.Errorf("%s: %s is left in\n%s", name, left, test.config)
		}
	}
}

func TestTheBackendsDifferByTheirNameAlone(t *testing.T) {
	config := backendsConfig("/d", addresses{old: "127.0.0.1:1001", new: "127.0.0.1:1002"})
	for _, part := range []string{"listen 127.0.0.1:1001 ", "listen 127.0.0.1:1002 ", "OLD::", "NEW::", "location = /blob { root /d; }"} {
		if !strings.Contains(config, part) {
			t.Errorf("no %q in\n%s", part, config)
		}
	}
	if a, b := len(answerOf("OLD")), len(answerOf("NEW")); a != b {
		t.Errorf("answers of %d and %d bytes", a, b)
	}
}
