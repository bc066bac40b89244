package licensing

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"specialroutes.example/services/internal/demo"
	"specialroutes.example/services/service"
)

const (
	defaultListen          = "127.0.0.1:8080"
	defaultOrganizationURL = "http://localhost:5555/api/organization"

	// defaultTimeout is below the 2.5 s that the demo's gateway waits for us.
	defaultTimeout = 2 * time.Second
)

// Main is the main function of the licensing service's binary. It is set by
// ORGANIZATION_URL, the organization service as the gateway offers it,
// ORGANIZATION_TIMEOUT (2s), and the variables of every demo service: LISTEN
// (127.0.0.1:8080), INSTANCE, LANE_HEADERS, DRAIN_DELAY, DRAIN_LIMIT, LOG_LEVEL;
// and to register in Consul: CONSUL_HTTP_ADDR, SERVICE_NAME, SERVICE_ID,
// SERVICE_ADDRESS, LABELS ("version=1.0.0,zone=a").
func Main() {
	const name = "licensingservice"
	service.Main(name, func(ctx context.Context, args, environ []string, stderr io.Writer, force <-chan os.Signal) error {
		env := demo.Environment(environ)
		settings, err := demo.Load(env, demo.Settings{
			Name: name, Listen: defaultListen, Instance: name, Drain: service.DefaultDrain(),
		})
		if err != nil {
			return err
		}
		timeout, err := env.Duration("ORGANIZATION_TIMEOUT", defaultTimeout)
		if err != nil {
			return err
		}
		url := env.Text("ORGANIZATION_URL", defaultOrganizationURL)
		organizations, err := NewClient(url, timeout)
		if err != nil {
			return fmt.Errorf("ORGANIZATION_URL: %w", err)
		}
		defer organizations.Close()
		return demo.Process{
			Settings: settings, Args: args, Stdout: os.Stdout, Stderr: stderr, Force: force,
			Variables: []demo.Variable{
				{Name: "ORGANIZATION_URL", Default: url, Means: "the organization service, as the gateway offers it"},
				{Name: "ORGANIZATION_TIMEOUT", Default: timeout.String(), Means: "how long it may take to answer"},
			},
		}.Run(ctx, NewHandler(organizations, Seed()))
	})
}
