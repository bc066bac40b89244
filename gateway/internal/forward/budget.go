package forward

import "sync/atomic"

// resendShare is the part of the active requests that may be second sends: one in
// so many.
const resendShare = 5

// budget keeps second sends from becoming a storm when upstreams fail. It is safe
// for concurrent use.
type budget struct {
	active  atomic.Int64
	resends atomic.Int64
}

// take allows one more second send, or not; what was allowed is given back when
// the request is over.
func (b *budget) take() bool {
	if (b.resends.Add(1)-1)*resendShare < b.active.Load() {
		return true
	}
	b.resends.Add(-1)
	return false
}

func (b *budget) giveBack() { b.resends.Add(-1) }
