package registry

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
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
		s.addAll(name, services[name], nil)
	}
	return s
}

// With returns a snapshot in which a service has these instances and no others, as
// NewSnapshot takes them. Instances about which nothing has changed stay the same
// pointers, and when nothing has changed at all it returns s itself.
func (s *Snapshot) With(service string, instances []Instance) *Snapshot {
	next := &Snapshot{services: maps.Clone(s.services), setAside: s.setAsideOfOthers(service)}
	delete(next.services, service)
	before := s.services[service]
	next.addAll(service, instances, before)
	after := next.services[service]
	if slices.Equal(before, after) {
		if slices.Equal(s.setAside, next.setAside) {
			return s
		}
		next.put(service, before)
	}
	return next
}

// Relabelled returns a snapshot in which these services have these instances, sorted
// by ID, in the place of their own. All else is the same, the slices of all other
// services too. It keeps the slices.
func (s *Snapshot) Relabelled(services map[string][]*Instance) *Snapshot {
	next := &Snapshot{services: maps.Clone(s.services), setAside: s.setAside}
	for service, instances := range services {
		next.put(service, instances)
	}
	return next
}

// put makes the instances those of a service.
func (s *Snapshot) put(service string, instances []*Instance) {
	if len(instances) == 0 {
		delete(s.services, service)
		return
	}
	s.services[service] = instances
}

// Find returns the place of an instance in a list that is sorted by ID.
func Find(instances []*Instance, id string) (at int, found bool) {
	return slices.BinarySearchFunc(instances, id, func(i *Instance, id string) int { return cmp.Compare(i.ID, id) })
}

// equal reports whether nothing differs.
func (i *Instance) equal(o *Instance) bool {
	return i.Service == o.Service && i.ByName == o.ByName && i.same(o)
}

// same reports whether nothing differs of what a registry says.
func (i *Instance) same(o *Instance) bool {
	return i.ID == o.ID && i.Address == o.Address &&
		i.Unconfirmed == o.Unconfirmed && maps.Equal(i.Labels, o.Labels) &&
		slices.Equal(i.FromMeta, o.FromMeta) && slices.Equal(i.Warnings, o.Warnings)
}

// setAsideOfOthers returns what is set aside of all services but one.
func (s *Snapshot) setAsideOfOthers(service string) []SetAside {
	return slices.DeleteFunc(slices.Clone(s.setAside), func(a SetAside) bool { return a.Service == service })
}

// addAll adds the instances of a service that has none yet. Those of before about
// which nothing has changed stay the same.
func (s *Snapshot) addAll(service string, instances []Instance, before []*Instance) {
	seen := make(map[string]bool, len(instances))
	for n := range instances {
		s.add(service, &instances[n], seen, before)
	}
	slices.SortFunc(s.services[service], func(a, b *Instance) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(s.setAside, func(a, b SetAside) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.ID, b.ID))
	})
}

// add adds one instance, unless it cannot be used. seen holds the IDs so far.
func (s *Snapshot) add(service string, given *Instance, seen map[string]bool, before []*Instance) {
	at, found := Find(before, given.ID)
	if found && before[at].same(given) && !seen[given.ID] {
		seen[given.ID] = true
		s.services[service] = append(s.services[service], before[at])
		return
	}
	i := *given
	i.Service = service
	if i.ID == "" {
		i.ID = i.Address
	}
	host, err := checkAddress(i.Address)
	if err == nil && seen[i.ID] {
		err = fmt.Errorf("another instance has the ID %q", i.ID)
	}
	if err != nil {
		s.setAside = append(s.setAside, SetAside{Service: service, ID: i.ID, Reason: err.Error()})
		return
	}
	seen[i.ID] = true
	_, notIP := netip.ParseAddr(host)
	i.ByName = notIP != nil
	i.keepUsableLabels()
	if at, found := Find(before, i.ID); found && before[at].equal(&i) {
		s.services[service] = append(s.services[service], before[at])
		return
	}
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
	if _, err := netip.ParseAddr(host); err != nil && strings.ContainsFunc(host, notInName) {
		return "", fmt.Errorf("the address %q has neither a name nor an IP address for a host", address)
	}
	return host, nil
}

// notInName reports whether a host name cannot hold a character. Underscores are
// not allowed in one, but resolvers take them and compose files have them.
func notInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
}

// Instances returns a service's instances, sorted by ID. Do not change the slice: it
// is the same one in later snapshots while nothing about the service changes.
func (s *Snapshot) Instances(service string) []*Instance { return s.services[service] }

// Services returns the names of all services that have instances, sorted.
func (s *Snapshot) Services() []string { return slices.Sorted(maps.Keys(s.services)) }

// Len is the number of a snapshot's instances.
func (s *Snapshot) Len() int {
	n := 0
	for _, instances := range s.services {
		n += len(instances)
	}
	return n
}

// SetAside returns the instances that cannot be used. Do not change the slice.
func (s *Snapshot) SetAside() []SetAside { return s.setAside }
