package consul

import (
	"net"
	"strconv"
	"strings"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/gateway/internal/registry"
)

// instancesOf returns the instances of an answer, all of whose checks pass, those
// of the node included; "warning" is not passing. Consul has filtered them already,
// but much depends on it.
//
// In Consul an ID is unique on its node only. Where an answer has one on several
// nodes, these instances are called ID@NODE.
func instancesOf(service string, entries []*api.ServiceEntry) []registry.Instance {
	nodes := make(map[string]map[string]bool)
	passing := make([]*api.ServiceEntry, 0, len(entries))
	for _, e := range entries {
		if e == nil || e.Service == nil || e.Checks.AggregatedStatus() != api.HealthPassing {
			continue
		}
		if e.Service.Service != "" && !strings.EqualFold(e.Service.Service, service) {
			continue // an answer to another question
		}
		passing = append(passing, e)
		if nodes[e.Service.ID] == nil {
			nodes[e.Service.ID] = make(map[string]bool)
		}
		nodes[e.Service.ID][nodeOf(e)] = true
	}
	instances := make([]registry.Instance, 0, len(passing))
	for _, e := range passing {
		i := registry.Instance{ID: e.Service.ID, Service: service, Address: address(e), Labels: labels(e.Service)}
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

// labels are the tags, split at the first "=", and the meta over them. A tag
// without "=" is a label whose value is the tag itself; later ones win. A label
// without a name is none.
func labels(s *api.AgentService) map[string]string {
	all := make(map[string]string, len(s.Tags)+len(s.Meta))
	for _, tag := range s.Tags {
		name, value, found := strings.Cut(tag, "=")
		if !found {
			value = tag
		}
		all[name] = value
	}
	for name, value := range s.Meta {
		all[name] = value
	}
	delete(all, "")
	return all
}
