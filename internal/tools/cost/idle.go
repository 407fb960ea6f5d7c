package main

import (
	"fmt"
	"math"
)

// idle measures what a thousand sleeping threads cost: processor time of the program
// and of seedwalk, for each second that they sleep longer.
func (o *options) idle() ([]goal, error) {
	fmt.Printf("\nidle, 1,000 threads that sleep, %d rounds: for each second, %% of a core\n", idleRounds)
	var goals []goal
	alone := 0.0
	for _, s := range []setup{{}, {"probe", 100}, {"probe", 1000}, {"snapshot", 100}} {
		var own, tool []float64
		stops := 0.0
		for range idleRounds {
			var r [2]result
			for k, ms := range idle {
				var err error
				if r[k], err = o.measure(program{"idle", ms}, s); err != nil {
					return nil, fmt.Errorf("idle, %v: %w", s, err)
				}
			}
			seconds := float64(idle[1]-idle[0]) / 1000
			own, tool = append(own, (r[1].cpu-r[0].cpu)/seconds), append(tool, (r[1].used-r[0].used)/seconds)
			stops = max(stops, r[1].samples)
		}
		p, q := of(own), of(tool)
		fmt.Printf("%-18v the program %s, seedwalk %s, %.0f signals of timers\n", s, p.percent(), q.percent(), stops)
		switch s {
		case setup{}:
			alone = p.mid
		case setup{"probe", 100}:
			spread := p.high - p.low + q.high - q.low
			goals = append(goals, goal{"1,000 idle threads, 100 Hz: in all", 100 * mayUse, false, 100 * (p.mid - alone + q.mid), 100 * math.Abs(spread), percent})
		}
	}
	return goals, nil
}
