package estate

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// drainDelay is short: nobody balances over these processes.
const drainDelay = "100ms"

// spec is what a process is started with, each time again.
type spec struct {
	name   string
	binary string // of Binaries
	file   string
	env    []string
	url    string // where it serves
	ready  string // the URL that answers 200 when it is ready
	log    string // file
	dir    string
}

// The names in the registry of what gateways call and others look for.
const (
	OrganizationName = "organizationservice"
	licensingName    = "licensingservice"
	gatewayName      = "gatewayservice"
)

// plan returns the processes, not started yet.
func plan(o Options, at addresses) (services, gateways []*Process, err error) {
	database := o.DatabaseURL
	if database == "" {
		database = "sqlite://" + filepath.ToSlash(filepath.Join(o.Dir, "specialroutes.db"))
	}
	services = []*Process{
		o.process(SpecialRoutes, SpecialRoutes, at.specialRoutes, at.specialRoutes,
			"SPECIALROUTES_LISTEN="+at.specialRoutes, "DATABASE_URL="+database,
			"SPECIALROUTES_INSECURE_ADMIN=true", "SPECIALROUTES_DRAIN_DELAY="+drainDelay,
			"CONSUL_HTTP_ADDR="+o.Consul),
		o.service(Instance{ID: OrgServiceOld, Service: OrganizationName}, OrgServiceOld, at.old),
		o.service(Instance{ID: OrgServiceNew, Service: OrgServiceNew}, OrgServiceNew, at.new),
		o.service(Instance{ID: LicensingService, Service: licensingName}, LicensingService, at.licensing,
			"ORGANIZATION_URL=http://"+at.gateways[0].data+"/api/organization"),
	}
	for i, instance := range o.Instances {
		services = append(services, o.service(instance, OrgServiceOld, at.instances[i]))
	}
	for i, g := range at.gateways {
		name := nameOfGateway(i)
		text, err := gatewayYAML(name, o, at, i)
		if err != nil {
			return nil, nil, err
		}
		config := filepath.Join(o.Dir, name+".yaml")
		if err := os.WriteFile(config, text, 0o600); err != nil {
			return nil, nil, fmt.Errorf("estate: %w", err)
		}
		gateways = append(gateways, o.process(name, Gateway, g.data, g.admin, "GATEWAY_CONFIG="+config))
	}
	return services, gateways, nil
}

func nameOfGateway(i int) string {
	if i == 0 {
		return Gateway
	}
	return fmt.Sprintf("%s-%d", Gateway, i)
}

// service returns a demo service's process.
func (o Options) service(i Instance, binary, at string, env ...string) *Process {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(i.Labels)) {
		labels = append(labels, name+"="+i.Labels[name])
	}
	return o.process(i.ID, binary, at, at, append([]string{
		"LISTEN=" + at, "DRAIN_DELAY=" + drainDelay, "INSTANCE=" + i.ID, "PREFIX=" + i.Prefix,
		"CONSUL_HTTP_ADDR=" + o.Consul, "SERVICE_NAME=" + i.Service, "LABELS=" + strings.Join(labels, ","),
	}, env...)...)
}

// process returns a process that serves on one address and says on another, or
// the same, when it is ready.
func (o Options) process(name, binary, data, admin string, env ...string) *Process {
	return &Process{spec: spec{
		name: name, binary: binary, file: o.Bin.Path(binary),
		env: slices.Concat(inherited(os.Environ()), env, o.Env[name]),
		url: "http://" + data, ready: "http://" + admin + "/readyz",
		log: filepath.Join(o.Dir, name+".log"), dir: o.Dir,
	}}
}

// inherited returns the variables that a process takes over from its parent.
func inherited(environ []string) []string {
	var env []string
	for _, line := range environ {
		switch name, _, _ := strings.Cut(line, "="); name {
		case "PATH", "HOME", "TMPDIR":
			env = append(env, line)
		}
	}
	return env
}
