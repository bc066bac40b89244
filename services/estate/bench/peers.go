package bench

import (
	"fmt"
	"strings"
)

// answerOf is what a backend answers, 180 bytes of JSON as the organization
// services give them.
func answerOf(side string) string {
	return `{"id":"e254f8c-c442-4ebe-a82a-e2fc1d1ff78a","name":"customer-crm-co","contactName":"` + side +
		`::Mark Balster","contactEmail":"mark.balster@custcrmco.com","contactPhone":"823-555-1212"}`
}

// The calls: the prefix leads to the organization service and is cut off.
const (
	prefix    = "/api/organization"
	smallPath = "/v1/organizations/e254f8c-c442-4ebe-a82a-e2fc1d1ff78a"
	largePath = "/blob"
	largeSize = 1 << 20
)

// addresses are where all that is not the estate listens, host:port each.
type addresses struct{ old, new, nginx, haproxy string }

// nginxHead is what both of our nginx have in common. They write nothing outside of
// dir, and a connection is not closed for having carried many requests.
func nginxHead(dir, name string) string {
	r := strings.NewReplacer("DIR", dir, "NAME", name)
	return r.Replace(`worker_processes 1;
daemon off;
pid DIR/NAME.pid;
error_log DIR/NAME.error;
events { worker_connections 8192; }
http {
  client_body_temp_path DIR/NAME-body; proxy_temp_path DIR/NAME-proxy; fastcgi_temp_path DIR/NAME-fastcgi;
  uwsgi_temp_path DIR/NAME-uwsgi; scgi_temp_path DIR/NAME-scgi;
  keepalive_requests 1000000000; keepalive_timeout 3600s; client_max_body_size 0;
`)
}

// backendsConfig is the nginx that stands for both organization services.
func backendsConfig(dir string, at addresses) string {
	var b strings.Builder
	b.WriteString(nginxHead(dir, "backends"))
	b.WriteString("  access_log off; sendfile on;\n")
	for _, side := range []struct{ address, name string }{{at.old, "OLD"}, {at.new, "NEW"}} {
		fmt.Fprintf(&b, `  server {
    listen %s backlog=4096;
    default_type application/json;
    location = %s { root %s; }
    location / { return 200 '%s'; }
  }
`, side.address, largePath, dir, answerOf(side.name))
	}
	b.WriteString("}\n")
	return b.String()
}

// nginxConfig is the nginx that does the gateway's work: it splits, cuts the prefix,
// makes a correlation ID and tells both sides of it, and logs.
func nginxConfig(dir string, at addresses) string {
	r := strings.NewReplacer("DIR", dir, "OLD", at.old, "NEW", at.new, "LISTEN", at.nginx, "PREFIX", prefix)
	return nginxHead(dir, "nginx") + r.Replace(`  access_log DIR/nginx.access combined buffer=64k;
  proxy_max_temp_file_size 0; proxy_buffers 16 32k; proxy_request_buffering off;
  split_clients "$request_id" $side { 50% new; * old; }
  upstream old { server OLD; keepalive 512; keepalive_requests 1000000000; }
  upstream new { server NEW; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen LISTEN backlog=4096;
    location PREFIX/ {
      rewrite ^PREFIX(/.*)$ $1 break;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header tmx-correlation-id $request_id;
      add_header tmx-correlation-id $request_id;
      proxy_pass http://$side;
    }
  }
}
`)
}

// haproxyConfig is the HAProxy that does the same. It logs to a socket, which it
// can only do with datagrams.
func haproxyConfig(dir string, at addresses) string {
	r := strings.NewReplacer("DIR", dir, "OLD", at.old, "NEW", at.new, "LISTEN", at.haproxy, "PREFIX", prefix)
	return r.Replace(`global
  nbthread 1
  maxconn 4000
  log DIR/` + logSocket + ` local0
defaults
  mode http
  log global
  option httplog
  timeout client 600s
  timeout server 600s
  timeout connect 5s
  option forwardfor
frontend f
  bind LISTEN
  unique-id-format %{+X}o\ %ci:%cp_%fi:%fp_%Ts_%rt:%pid
  unique-id-header tmx-correlation-id
  http-request replace-path PREFIX(/.*) \1
  http-response set-header tmx-correlation-id %[unique-id]
  default_backend b
backend b
  balance random
  http-reuse always
  server old OLD weight 50
  server new NEW weight 50
`)
}
