package balance

import (
	"testing"
	"time"
)

func newCircuit() *circuit { return new(circuit) }

func TestTheCircuitOpensAtTheThirdFailureInARow(t *testing.T) {
	t.Parallel()
	c, now := newCircuit(), newClock()
	c.fail(now.at, false)
	c.fail(now.at, false)
	c.succeed()
	c.fail(now.at, false)
	c.fail(now.at, false)
	if got := c.state(now.at); got != closed {
		t.Fatalf("state after two failures in a row = %v, want closed", got)
	}
	c.fail(now.at, false)
	if got := c.state(now.at); got != tripped {
		t.Fatalf("state after three failures in a row = %v, want tripped", got)
	}
}

func TestTheCircuitStaysOpenLongerEachTime(t *testing.T) {
	t.Parallel()
	c, now := newCircuit(), newClock()
	c.fail(now.at, false)
	c.fail(now.at, false)
	for i, open := range []time.Duration{10, 20, 30, 30, 30} {
		c.fail(now.at, false)
		now.advance(open*time.Second - 1)
		if ok, _ := c.enter(now.at); ok {
			t.Errorf("failure %d: a request enters before %v s are over", i+3, open)
		}
		now.advance(1)
		if ok, probe := c.enter(now.at); !ok || probe == 0 {
			t.Errorf("failure %d: enter after %v s = %v, %v; want a probe", i+3, open, ok, probe)
		}
	}
}

func TestOneRequestProbes(t *testing.T) {
	t.Parallel()
	c, now := newCircuit(), newClock()
	for range tripAt {
		c.fail(now.at, false)
	}
	now.advance(openTime)
	if ok, probe := c.enter(now.at); !ok || probe == 0 {
		t.Fatal("no probe after the time is over")
	}
	if ok, _ := c.enter(now.at); ok {
		t.Fatal("a second request enters while one probes")
	}
	c.abandon(1)
	if ok, probe := c.enter(now.at); !ok || probe == 0 {
		t.Fatal("no second probe after one that found out nothing")
	}
	c.succeed()
	for range 3 {
		if ok, probe := c.enter(now.at); !ok || probe != 0 {
			t.Fatalf("enter after a probe that succeeded = %v, %v; want true, 0", ok, probe)
		}
	}
}

func tripping(t *testing.T, slow bool) (*circuit, *clock, int) {
	t.Helper()
	c, now := newCircuit(), newClock()
	for range tripAt {
		c.fail(now.at, slow)
	}
	now.advance(openTime)
	ok, probe := c.enter(now.at)
	if !ok || probe == 0 {
		t.Fatal("no probe after the time is over")
	}
	return c, now, probe
}

// A slow upload that probes must not keep a target out that can be reached.
func TestAProbeThatHasItsConnectionLetsTheNextOneIn(t *testing.T) {
	t.Parallel()
	c, now, first := tripping(t, false)
	c.connected(first)
	ok, second := c.enter(now.at)
	if !ok || second == 0 || second == first {
		t.Fatalf("enter while the first probe uploads = %v, %v; want a second probe", ok, second)
	}
	c.connected(first)
	c.abandon(first)
	if ok, _ := c.enter(now.at); ok {
		t.Error("the end of the first probe ended the second one")
	}
	c.succeed()
	if got := c.state(now.at); got != closed {
		t.Errorf("state after an answer = %v, want closed", got)
	}
}

func TestAConnectionSaysNothingWhereAnswersFailedToCome(t *testing.T) {
	t.Parallel()
	c, now, probe := tripping(t, true)
	c.connected(probe)
	now.advance(openTime - 1)
	if ok, _ := c.enter(now.at); ok {
		t.Error("a second request enters a target that hangs")
	}
	now.advance(1)
	if ok, next := c.enter(now.at); !ok || next == 0 {
		t.Error("a probe without an end keeps all others away")
	}
}
