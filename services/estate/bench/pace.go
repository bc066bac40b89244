package bench

import "time"

// pace is a load at a constant rate.
type pace struct {
	rate        float64       // requests per second
	lasts       time.Duration // how long requests are sent
	patience    time.Duration // how long the last answers are waited for
	connections int           // over which they are sent; a connection carries one at a time
}

// patience is that of a measurement.
const patience = 5 * time.Second

// total is how many requests are sent.
func (p pace) total() int { return int(p.rate * p.lasts.Seconds()) }
