//go:build !linux

package forward

// loopRuns says whether there is a loop: it stands on what Linux alone tells of
// sockets.
const loopRuns = false

func runLoop(*loop, *tracked) {}

// direct is the loop's way to upstreams.
type direct struct{}

func newEngine(Options, *budget) *direct { return new(direct) }

func (*direct) close() {}
