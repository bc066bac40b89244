// Package bench measures what a request costs in the gateway beside nginx and
// HAProxy, which do the same work. `make bench` prints what it finds.
//
// All of them run on one core, the load and the backends on another one, and the
// rounds go in turn, so that a slower minute of the machine hits all alike. The
// ratios count; the times are those of the machine. Everything is a process of its
// own, as a user would run it: the gateway with its filters, a route record that
// splits the calls between the two backends, metrics, and its access log in a file.
//
// It needs Linux, two cores, nginx, HAProxy, wrk and taskset.
package bench
