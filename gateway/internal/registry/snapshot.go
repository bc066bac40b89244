package registry

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Snapshot is the instances of one moment. It is immutable and safe for
// concurrent use.
type Snapshot struct {
	services map[string][]*Instance
	setAside []SetAside
}

// SetAside is an instance that cannot be used, and why.
type SetAside struct {
	Service string
	ID      string
	Reason  string
}

// NewSnapshot builds a snapshot of the instances of each service. An instance
// without an ID is named by its address. What cannot be used (no address, port 0,
// an ID twice in a service) is set aside; it never takes the others with it.
func NewSnapshot(services map[string][]Instance) *Snapshot {
	s := &Snapshot{services: make(map[string][]*Instance, len(services))}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		for _, instance := range services[name] {
			s.add(name, instance)
		}
		slices.SortFunc(s.services[name], func(a, b *Instance) int { return cmp.Compare(a.ID, b.ID) })
	}
	return s
}

func (s *Snapshot) add(service string, i Instance) {
	i.Service = service
	if i.ID == "" {
		i.ID = i.Address
	}
	host, err := checkAddress(i.Address)
	if err == nil && slices.ContainsFunc(s.services[service], func(o *Instance) bool { return o.ID == i.ID }) {
		err = fmt.Errorf("another instance has the ID %q", i.ID)
	}
	if err != nil {
		s.setAside = append(s.setAside, SetAside{Service: service, ID: i.ID, Reason: err.Error()})
		return
	}
	_, notIP := netip.ParseAddr(host)
	i.ByName = notIP != nil
	i.Labels = maps.Clone(i.Labels)
	s.services[service] = append(s.services[service], &i)
}

// checkAddress returns the host of an address that can be dialled.
func checkAddress(address string) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("the address %q is not host:port", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("the address %q has no usable port", address)
	}
	if host == "" {
		return "", fmt.Errorf("the address %q has no host", address)
	}
	return host, nil
}

// Instances returns a service's instances, sorted by ID. Do not change the slice.
func (s *Snapshot) Instances(service string) []*Instance { return s.services[service] }

// Services returns the names of all services that have instances, sorted.
func (s *Snapshot) Services() []string { return slices.Sorted(maps.Keys(s.services)) }

// SetAside returns the instances that cannot be used. Do not change the slice.
func (s *Snapshot) SetAside() []SetAside { return s.setAside }
