package estate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"specialroutes.example/services/service"
)

// addresses are where the processes listen, host:port each.
type addresses struct {
	specialRoutes, old, new, licensing string

	gateways  []gatewayAddresses
	instances []string // of Options.Instances, in order
}

type gatewayAddresses struct{ data, admin string }

// host is the only interface that the estate listens on: it has no
// authentication.
const host = "127.0.0.1"

// Free ports are taken from below those that systems give to outgoing
// connections (from 32768 on Linux, 49152 on macOS), so that a process that is
// stopped finds its port again when it starts.
const (
	lowestFreePort  = 18000
	highestFreePort = 31999
	freePortTries   = 1000
)

// wantedPort is one port to reserve.
type wantedPort struct {
	name  string  // for errors
	fixed int     // 0 takes a free one
	to    *string // where the address goes
}

// reserve finds a port for each listener: the fixed ones, or free ones. All are
// open until all are found, so that none is given twice; then they are closed for
// the processes to open.
func reserve(fixed bool, gateways int, instances []Instance) (addresses, error) {
	at := addresses{gateways: make([]gatewayAddresses, gateways), instances: make([]string, len(instances))}
	wanted := []wantedPort{
		{"gateway data", 5555, &at.gateways[0].data},
		{"gateway admin", 5556, &at.gateways[0].admin},
		{SpecialRoutes, 8910, &at.specialRoutes},
		{OrgServiceOld, 8085, &at.old},
		{OrgServiceNew, 8087, &at.new},
		{LicensingService, 8080, &at.licensing},
	}
	if !fixed {
		for i := range wanted {
			wanted[i].fixed = 0
		}
	}
	for i := 1; i < gateways; i++ {
		wanted = append(wanted,
			wantedPort{nameOfGateway(i) + " data", 0, &at.gateways[i].data},
			wantedPort{nameOfGateway(i) + " admin", 0, &at.gateways[i].admin})
	}
	for i, instance := range instances {
		wanted = append(wanted, wantedPort{instance.ID, 0, &at.instances[i]})
	}
	var errs []error
	for _, w := range wanted {
		ln, err := w.open()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		defer ln.Close()
		*w.to = ln.Addr().String()
	}
	return at, errors.Join(errs...)
}

// CheckPorts returns an error that names each of the fixed ports that is in use,
// so that a caller need not build first to learn it.
func CheckPorts() error {
	_, err := reserve(true, 1, nil)
	return err
}

func (w wantedPort) open() (net.Listener, error) {
	if w.fixed == 0 {
		return openFree(w.name)
	}
	address := fmt.Sprintf("%s:%d", host, w.fixed)
	// Whoever listens on all interfaces, or on ::1, would get a part of our calls,
	// and not every system refuses our port then.
	all, err := net.Listen("tcp", fmt.Sprintf(":%d", w.fixed))
	if err == nil {
		_ = all.Close()
		var ln net.Listener
		if ln, err = net.Listen("tcp", address); err == nil {
			return ln, nil
		}
	}
	return nil, &service.ListenError{Endpoint: w.name, Address: address, Err: err}
}

func openFree(name string) (net.Listener, error) {
	var err error
	for range freePortTries {
		port := lowestFreePort + rand.IntN(highestFreePort-lowestFreePort+1)
		var ln net.Listener
		if ln, err = net.Listen("tcp", fmt.Sprintf("%s:%d", host, port)); err == nil {
			return ln, nil
		}
	}
	return nil, fmt.Errorf("estate: no free port for %s: %w", name, err)
}
