package balance

import "specialroutes.example/services/routing"

// Pick is one attempt's target. The attempt says how it ended: ConnectFailed,
// TimedOut or Answered; and Release when it is over, whatever happened.
type Pick struct {
	*candidate
	Variant *routing.Target // the variant that the target belongs to

	selection *Selection
	stage     stage
	probe     bool
	released  bool
}

// ConnectFailed says that no connection could be had, so that nothing was sent.
func (p *Pick) ConnectFailed() {
	if p.failed != nil {
		p.failed()
	}
	p.probe = false
	p.circuit.fail(p.selection.balancer.options.Now())
	p.selection.connects[p.stage]++
}

// TimedOut says that no answer came in time.
func (p *Pick) TimedOut() {
	p.probe = false
	p.circuit.fail(p.selection.balancer.options.Now())
}

// Answered says that an answer came, whatever it says.
func (p *Pick) Answered() {
	p.probe = false
	p.circuit.succeed()
}

// Release ends the attempt. A second call does nothing.
func (p *Pick) Release() {
	if p.released {
		return
	}
	p.released = true
	p.circuit.active.Add(-1)
	if p.probe {
		p.circuit.abandon()
	}
}
