package consul

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/gateway/internal/registry"
)

// instancesOf returns the instances of an answer, all of whose checks pass, those
// of the node included; "warning" is not passing. Consul has filtered them already,
// but much depends on it.
//
// With serviceCheck an instance must have a check of its own: one that was listed
// before its check is registered passes by its node's alone.
//
// In Consul an ID is unique on its node only. Where an answer has one on several
// nodes, these instances are called ID@NODE.
func instancesOf(service string, entries []*api.ServiceEntry, serviceCheck bool) []registry.Instance {
	nodes := make(map[string]map[string]bool)
	passing := make([]*api.ServiceEntry, 0, len(entries))
	for _, e := range entries {
		if e == nil || e.Service == nil || e.Checks.AggregatedStatus() != api.HealthPassing {
			continue
		}
		if e.Service.Service != "" && !strings.EqualFold(e.Service.Service, service) {
			continue // an answer to another question
		}
		if serviceCheck && !slices.ContainsFunc(e.Checks, func(c *api.HealthCheck) bool { return c != nil && c.ServiceID != "" }) {
			continue
		}
		passing = append(passing, e)
		if nodes[e.Service.ID] == nil {
			nodes[e.Service.ID] = make(map[string]bool)
		}
		nodes[e.Service.ID][nodeOf(e)] = true
	}
	instances := make([]registry.Instance, 0, len(passing))
	for _, e := range passing {
		i := registry.Instance{ID: e.Service.ID, Service: service, Address: address(e)}
		setLabels(&i, e.Service)
		if len(nodes[i.ID]) > 1 {
			i.ID += "@" + nodeOf(e)
		}
		instances = append(instances, i)
	}
	return instances
}

func nodeOf(e *api.ServiceEntry) string {
	if e.Node == nil {
		return ""
	}
	return e.Node.Node
}

// address is that of the service, else that of its node. What is no address is
// none afterwards either, and the snapshot sets it aside.
func address(e *api.ServiceEntry) string {
	host := e.Service.Address
	if host == "" && e.Node != nil {
		host = e.Node.Address
	}
	if unwrapped, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(unwrapped, "]")
	}
	return net.JoinHostPort(host, strconv.Itoa(e.Service.Port))
}

// setLabels gives an instance its labels: the tags, split at the first "=", and the
// meta over them. A tag without "=" is a label whose value is the tag itself; later
// ones win. A label without a name is none. Where tags and meta contradict each
// other, that is said; the instance is used with what the meta says.
func setLabels(i *registry.Instance, s *api.AgentService) {
	all := make(map[string]string, len(s.Tags)+len(s.Meta))
	for _, tag := range s.Tags {
		name, value, found := strings.Cut(tag, "=")
		if !found {
			value = tag
		}
		all[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(s.Meta)) {
		value := s.Meta[name]
		if tag, tagged := all[name]; tagged && tag != value && name != "" {
			i.Warnings = append(i.Warnings, fmt.Sprintf("the meta %.80q contradicts the tag: %.80q and %.80q; the meta holds", name, value, tag))
		}
		if all[name] = value; name != "" {
			i.FromMeta = append(i.FromMeta, name)
		}
	}
	delete(all, "")
	i.Labels = all
}
