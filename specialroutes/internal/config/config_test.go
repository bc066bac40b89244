package config_test

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"specialroutes.example/services/registration"
	"specialroutes.example/specialroutes/internal/config"
)

func load(t *testing.T, args, environ []string) (config.Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("specialroutes", pflag.ContinueOnError)
	config.Bind(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatalf("flags.Parse(%q): %v", args, err)
	}
	return config.Load(flags, environ)
}

func defaults() config.Config {
	return config.Config{Listen: "127.0.0.1:8910", DrainDelay: 5 * time.Second, DrainLimit: 30 * time.Second, Registration: named("specialroutesservice")}
}

// named is what is registered when no more than the name is set.
func named(service string) registration.Options {
	return registration.Options{Service: service, Labels: map[string]string{}}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		args    []string
		environ []string
		want    func(*config.Config)
	}{
		{name: "nothing is given", want: func(*config.Config) {}},
		{
			name: "everything by environment",
			environ: []string{
				"SPECIALROUTES_LISTEN=:8910", "DATABASE_URL=postgres://u:p@db/x", "SPECIALROUTES_NO_MIGRATE=true",
				"SPECIALROUTES_TOKENS_FILE=/t", "SPECIALROUTES_HOSTS=a.example, B.example,,::1",
				"SPECIALROUTES_TLS_CERT=/c", "SPECIALROUTES_TLS_KEY=/k", "SPECIALROUTES_LOG_LEVEL=DEBUG",
				"SPECIALROUTES_DRAIN_DELAY=0s", "SPECIALROUTES_DRAIN_LIMIT=1m", "SPECIALROUTES_HISTORY_KEEP=8760h",
				"SPECIALROUTES_ALLOW_LINK_LOCAL=true", "CONSUL_HTTP_ADDR=consul:8500", "SERVICE_NAME=sr", "SERVICE_ID=sr-1",
				"SERVICE_ADDRESS=10.0.0.7", "LABELS=version=1.0.0, zone=a",
			},
			want: func(c *config.Config) {
				*c = config.Config{
					Listen: ":8910", DatabaseURL: "postgres://u:p@db/x", NoMigrate: true, TokensFile: "/t",
					Hosts: []string{"a.example", "b.example", "::1"}, TLSCert: "/c", TLSKey: "/k",
					Registration: registration.Options{
						Agent: "consul:8500", Service: "sr", ID: "sr-1", Address: "10.0.0.7",
						Labels: map[string]string{"version": "1.0.0", "zone": "a"},
					},
					LogLevel: slog.LevelDebug, DrainLimit: time.Minute, HistoryKeep: 8760 * time.Hour, AllowLinkLocal: true,
				}
			},
		},
		{
			name: "everything by flag",
			args: []string{
				"--listen=[::1]:0", "--database-url=sqlite:///x.db", "--no-migrate", "--insecure-admin", "--hosts=*",
				"--log-level=error", "--drain-delay=1s", "--drain-limit=2s", "--history-keep=1h", "--allow-link-local",
			},
			want: func(c *config.Config) {
				*c = config.Config{
					Listen: "[::1]:0", DatabaseURL: "sqlite:///x.db", NoMigrate: true, InsecureAdmin: true, Hosts: []string{"*"},
					LogLevel: slog.LevelError, DrainDelay: time.Second, DrainLimit: 2 * time.Second, HistoryKeep: time.Hour, AllowLinkLocal: true,
					Registration: named("specialroutesservice"),
				}
			},
		},
		{
			name:    "a flag wins over the environment, and may take back what that gives",
			args:    []string{"--insecure-admin=false", "--listen=:2"},
			environ: []string{"SPECIALROUTES_INSECURE_ADMIN=true", "SPECIALROUTES_LISTEN=:1"},
			want:    func(c *config.Config) { c.Listen = ":2" },
		},
		{
			name:    "an empty variable is an absent one",
			environ: []string{"SPECIALROUTES_LISTEN=", "SPECIALROUTES_DRAIN_LIMIT="},
			want:    func(*config.Config) {},
		},
		{
			name:    "the last of two variables counts",
			environ: []string{"SPECIALROUTES_LISTEN=:1", "SPECIALROUTES_LISTEN=:2"},
			want:    func(c *config.Config) { c.Listen = ":2" },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := defaults()
			test.want(&want)
			got, err := load(t, test.args, test.environ)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("Load(%q, %q) = %+v, %v, want %+v", test.args, test.environ, got, err, want)
			}
		})
	}
}

func TestLoadNamesEveryMistake(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		args    []string
		environ []string
		want    []string // in the error, all of them
	}{
		{"an address without port", nil, []string{"SPECIALROUTES_LISTEN=localhost"}, []string{"SPECIALROUTES_LISTEN", "host:port"}},
		{"a port out of range", []string{"--listen=:65536"}, nil, []string{"--listen", "65535"}},
		{"another database", nil, []string{"DATABASE_URL=mysql://x"}, []string{"DATABASE_URL", "postgres://"}},
		{"a boolean that is none", nil, []string{"SPECIALROUTES_INSECURE_ADMIN=yes"}, []string{"SPECIALROUTES_INSECURE_ADMIN", "neither true nor false"}},
		{"a label without a value", nil, []string{"LABELS=version"}, []string{"LABELS", "not name=value"}},
		{"half of a permission", nil, []string{"SPECIALROUTES_ALLOW_LINK_LOCAL=1"}, []string{"SPECIALROUTES_ALLOW_LINK_LOCAL", "neither true nor false"}},
		{"a level that is none", []string{"--log-level=loud"}, nil, []string{"--log-level", "loud"}},
		{"a time without unit", []string{"--drain-delay=5"}, nil, []string{"--drain-delay"}},
		{"a negative time", []string{"--drain-delay=-1s"}, nil, []string{"--drain-delay"}},
		{"a history of years", []string{"--history-keep=1y"}, nil, []string{"--history-keep", "1y"}},
		{"a history of less than nothing", nil, []string{"SPECIALROUTES_HISTORY_KEEP=-1h"}, []string{"SPECIALROUTES_HISTORY_KEEP"}},
		{"no time to drain", []string{"--drain-limit=0s"}, nil, []string{"--drain-limit"}},
		{"a host with a port", []string{"--hosts=a:80"}, nil, []string{"--hosts", "without port"}},
		{"a certificate without key", []string{"--tls-cert=c"}, nil, []string{"--tls-cert", "--tls-key"}},
		{"tokens and no need of them", []string{"--tokens-file=t", "--insecure-admin"}, nil, []string{"--tokens-file", "--insecure-admin"}},
		{"two at once", []string{"--listen=x", "--log-level=y"}, nil, []string{"--listen", "--log-level"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := load(t, test.args, test.environ)
			if err == nil {
				t.Fatalf("Load(%q, %q) = %+v, want an error", test.args, test.environ, got)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Load(%q, %q): %q does not say %q", test.args, test.environ, err, want)
				}
			}
		})
	}
}

func TestLoadDoesNotRepeatADatabaseURL(t *testing.T) {
	t.Parallel()
	_, err := load(t, nil, []string{"DATABASE_URL=mysql://user:hunter2@db/x"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Load(DATABASE_URL with a password) = %v, want an error without it", err)
	}
}
