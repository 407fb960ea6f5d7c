package continuous

import (
	"fmt"
	"sync"
	"time"
)

// Bounds of the rate that the budget chooses.
const (
	lowestRate = 1
	lookEvery  = 5 * time.Second
)

// budget keeps the agent below a share of a core and a size of memory.
type budget struct {
	want   float64 // rate without a shortage
	share  float64 // of one core
	memory int64

	mu     sync.Mutex
	now    float64 // rate of the next interval
	pause  bool
	cutter chan struct{} // closed when running intervals must end
	used   usage
}

// usage is what the agent has used.
type usage struct {
	CPU    time.Duration
	Memory int64
}

func newBudget(rate, share float64, memory int64) *budget {
	return &budget{want: rate, share: share, memory: memory, now: rate, cutter: make(chan struct{})}
}

func (b *budget) rate() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *budget) paused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pause
}

func (b *budget) cut() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cutter
}

func (b *budget) usage() usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

func (b *budget) run(stop <-chan struct{}, say func(string)) {
	last, at := ownUsage(), time.Now()
	for sleep(lookEvery, stop) {
		now, t := ownUsage(), time.Now()
		if line := b.look(float64(now.CPU-last.CPU)/float64(t.Sub(at)), now); line != "" {
			say(line)
		}
		last, at = now, t
	}
}

// look adapts the rate to the share of a core that was used since the last look, and ends
// the running intervals if the memory is used up. It returns a line if that changes what is
// recorded at all.
func (b *budget) look(share float64, u usage) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = u
	full := u.Memory > b.memory || share > b.share && b.now <= lowestRate
	switch {
	case full && !b.pause:
		b.pause = true
		close(b.cutter)
		b.cutter = make(chan struct{})
		return fmt.Sprintf("recording pauses: %.1f %% of a core and %d MB are used, the budget is %.1f %% and %d MB",
			100*share, u.Memory>>20, 100*b.share, b.memory>>20)
	case b.pause && u.Memory < b.memory*9/10 && share < b.share:
		b.pause = false
		return "recording goes on"
	case b.pause:
	case share > b.share:
		b.now = max(lowestRate, b.now*max(0.5, 0.9*b.share/share))
	case share < b.share/2:
		b.now = min(b.want, b.now*1.25)
	}
	return ""
}
