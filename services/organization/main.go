package organization

import (
	"context"
	"io"
	"os"

	"specialroutes.example/services/internal/demo"
	"specialroutes.example/services/service"
)

// Main is the main function of an organization service's binary. The name is that
// of the instance; listen is the address and prefix the text before contact names,
// where LISTEN and PREFIX do not say otherwise. The other variables are those of
// every demo service: INSTANCE, LANE_HEADERS, DRAIN_DELAY, DRAIN_LIMIT, LOG_LEVEL;
// and to register in Consul: CONSUL_HTTP_ADDR, SERVICE_NAME, SERVICE_ID,
// SERVICE_ADDRESS, LABELS ("version=1.0.0,zone=a").
func Main(name, listen, prefix string) {
	service.Main(name, func(ctx context.Context, args, environ []string, stderr io.Writer, force <-chan os.Signal) error {
		env := demo.Environment(environ)
		settings, err := demo.Load(env, demo.Settings{
			Name: name, Listen: listen, Instance: name, Drain: service.DefaultDrain(),
		})
		if err != nil {
			return err
		}
		prefix := env.Text("PREFIX", prefix)
		return demo.Process{
			Settings: settings, Args: args, Stdout: os.Stdout, Stderr: stderr, Force: force,
			Variables: []demo.Variable{{Name: "PREFIX", Default: prefix, Means: "stands before the contact names of answers to GET"}},
		}.Run(ctx, NewHandler(prefix, Seed()))
	})
}
