package bench

import (
	"context"
	"fmt"
	"time"
)

// Some measurements need fewer turns than others to be steady.
const mostIdleRounds = 3

// results are what the turns of each contender gave, by its name.
type results map[string]*result

// result is what the turns of one contender gave.
type result struct {
	cpu, rate, p99 values
}

func (r results) add(name string, f full) {
	if r[name] == nil {
		r[name] = &result{}
	}
	r[name].cpu = append(r[name].cpu, f.cpu)
	r[name].rate = append(r[name].rate, f.rate)
	r[name].p99 = append(r[name].p99, f.p99)
}

// inTurn gives each contender its turn, round after round. The first round, of a
// second each, only warms up.
func (s *setup) inTurn(o Options, turn func(c *contender, d time.Duration, counts bool) error) error {
	for round := range o.Rounds + 1 {
		d := o.duration()
		if round == 0 {
			d = time.Second
		}
		for _, c := range s.contenders {
			if err := turn(c, d, round > 0); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return nil
}

// atFullLoad measures a path with as many requests as each contender takes.
func (s *setup) atFullLoad(ctx context.Context, o Options, path string, connections int) (results, error) {
	r := results{}
	return r, s.inTurn(o, func(c *contender, d time.Duration, counts bool) error {
		f, err := fullLoad(ctx, c.url(path), c.pid(), d, connections)
		if err == nil && counts {
			r.add(c.name, f)
		}
		return err
	})
}

func (r *Report) measureSmall(ctx context.Context, s *setup, o Options) (err error) {
	r.small, err = s.atFullLoad(ctx, o, smallPath, o.Connections)
	return err
}

// largeConnections carry the large answers: more of them only fill memory.
const largeConnections = 16

func (r *Report) measureLarge(ctx context.Context, s *setup, o Options) (err error) {
	r.large, err = s.atFullLoad(ctx, o, largePath, largeConnections)
	return err
}

// measurePaced measures the time to an answer at half of the rate that nginx takes
// at most.
func (r *Report) measurePaced(ctx context.Context, s *setup, o Options) error {
	r.paced, r.pace = results{}, r.small[nameNginx].rate.median()/2
	return s.inTurn(o, func(c *contender, d time.Duration, counts bool) error {
		times, err := constantLoad(ctx, c.address, prefix+smallPath, pace{rate: r.pace, lasts: d, patience: patience, connections: o.Connections})
		if err == nil && counts {
			r.paced.add(c.name, full{p99: float64(quantile(times, 0.99)) / float64(time.Millisecond)})
		}
		return err
	})
}

func (r *Report) measureIdle(ctx context.Context, s *setup, o Options) error {
	r.idle = map[string]values{}
	for range min(o.Rounds, mostIdleRounds) {
		for _, c := range s.contenders {
			if err := c.restart(ctx); err != nil {
				return err
			}
			bytes, err := idleMemory(ctx, c.address, prefix+smallPath, c.pid())
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			r.idle[c.name] = append(r.idle[c.name], bytes/(1<<10))
		}
	}
	return nil
}
