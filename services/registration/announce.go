package registration

import (
	"context"
	"net"

	"specialroutes.example/services/service"
)

// Announce has a process register once it listens, and deregister when its stop
// begins, before it drains. It adds to o what service.Run needs for that. What others
// call is the endpoint data; the check is asked of the endpoint checked, which may be
// the same. Without the address of an agent it does nothing. The error is that of
// New.
func Announce(o *service.Options, what Options, data, checked string) error {
	if what.Agent == "" {
		return nil
	}
	if what.Log == nil {
		what.Log = o.Log
	}
	r, err := New(what)
	if err != nil {
		return err
	}
	open := map[string]chan net.Addr{data: make(chan net.Addr, 2), checked: make(chan net.Addr, 2)}
	before := o.OnListen
	o.OnListen = func(name string, at net.Addr) {
		if opened := open[name]; opened != nil {
			opened <- at
			opened <- at // one for each of the two, where they are the same
		}
		if before != nil {
			before(name, at)
		}
	}
	o.Background = append(o.Background, func(ctx context.Context) error {
		listening, asked := first(ctx, open[data]), first(ctx, open[checked])
		if listening == nil || asked == nil {
			return nil
		}
		return r.Run(ctx, listening, asked)
	})
	o.Leave = r.Leave
	return nil
}

// first returns the address of an endpoint once it is open, or nil when ctx ends
// before.
func first(ctx context.Context, opened <-chan net.Addr) net.Addr {
	select {
	case at := <-opened:
		return at
	case <-ctx.Done():
		return nil
	}
}
