package balance

import "specialroutes.example/services/routing"

// Pick is one attempt's target. The attempt says when it has a connection, Connected,
// and how it ended: ConnectFailed, TimedOut or Answered; and Release when it is over,
// whatever happened.
type Pick struct {
	*candidate
	Variant *routing.Target // the variant that the target belongs to

	selection *Selection
	stage     stage
	probe     int // its number where it is the circuit's probe; else 0
	released  bool
}

// Connected says that the attempt has a connection, be it new or one that was kept.
// It matters to the request that finds out whether a target is well again: until then
// all others are kept away. Other requests pay one comparison.
func (p *Pick) Connected() {
	if p.probe != 0 {
		p.circuit.connected(p.probe)
	}
}

// ConnectFailed says that no connection could be had, so that nothing was sent.
func (p *Pick) ConnectFailed() {
	if p.failed != nil {
		p.failed()
	}
	p.probe = 0
	p.circuit.fail(p.selection.balancer.options.Now(), false)
	p.selection.connects[p.stage]++
}

// TimedOut says that no answer came in time.
func (p *Pick) TimedOut() {
	p.probe = 0
	p.circuit.fail(p.selection.balancer.options.Now(), true)
}

// Answered says that an answer came, whatever it says.
func (p *Pick) Answered() {
	p.probe = 0
	p.circuit.succeed()
}

// Release ends the attempt. A second call does nothing.
func (p *Pick) Release() {
	if p.released {
		return
	}
	p.released = true
	p.circuit.active.Add(-1)
	if p.probe != 0 {
		p.circuit.abandon(p.probe)
	}
}
