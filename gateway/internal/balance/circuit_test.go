package balance

import (
	"sync/atomic"
	"testing"
	"time"
)

func newCircuit() *circuit { return &circuit{trips: new(atomic.Int64)} }

func TestTheCircuitOpensAtTheThirdFailureInARow(t *testing.T) {
	t.Parallel()
	c, now := newCircuit(), newClock()
	c.fail(now.at)
	c.fail(now.at)
	c.succeed()
	c.fail(now.at)
	c.fail(now.at)
	if got := c.state(now.at); got != closed {
		t.Fatalf("state after two failures in a row = %v, want closed", got)
	}
	c.fail(now.at)
	if got := c.state(now.at); got != tripped {
		t.Fatalf("state after three failures in a row = %v, want tripped", got)
	}
}

func TestTheCircuitStaysOpenLongerEachTime(t *testing.T) {
	t.Parallel()
	c, now := newCircuit(), newClock()
	c.fail(now.at)
	c.fail(now.at)
	for i, open := range []time.Duration{10, 20, 30, 30, 30} {
		c.fail(now.at)
		now.advance(open*time.Second - 1)
		if ok, _ := c.enter(now.at); ok {
			t.Errorf("failure %d: a request enters before %v s are over", i+3, open)
		}
		now.advance(1)
		if ok, probe := c.enter(now.at); !ok || !probe {
			t.Errorf("failure %d: enter after %v s = %v, %v; want a probe", i+3, open, ok, probe)
		}
	}
}

func TestOneRequestProbes(t *testing.T) {
	t.Parallel()
	c, now := newCircuit(), newClock()
	for range tripAt {
		c.fail(now.at)
	}
	now.advance(openTime)
	if ok, probe := c.enter(now.at); !ok || !probe {
		t.Fatal("no probe after the time is over")
	}
	if ok, _ := c.enter(now.at); ok {
		t.Fatal("a second request enters while one probes")
	}
	c.abandon()
	if ok, probe := c.enter(now.at); !ok || !probe {
		t.Fatal("no second probe after one that found out nothing")
	}
	c.succeed()
	for range 3 {
		if ok, probe := c.enter(now.at); !ok || probe {
			t.Fatalf("enter after a probe that succeeded = %v, %v; want true, false", ok, probe)
		}
	}
	if got := c.trips.Load(); got != 0 {
		t.Errorf("%d circuits count as open, want 0", got)
	}
}
