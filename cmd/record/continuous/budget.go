package continuous

import (
	"fmt"
	"sync"
	"time"
)

// Bounds of what the budget decides.
const (
	lowestRate = 1
	lookEvery  = 5 * time.Second
	looks      = 12                     // looks at steady recording before the rate changes
	saveUp     = 5 * time.Minute        // time whose CPU budget can be saved for sessions
	beginCost  = 300 * time.Millisecond // CPU time to begin a session
)

// budget keeps the agent below a share of a core and a size of memory. To begin a session costs
// as much CPU time as to record for minutes. So the agent saves CPU time for it, and intervals in
// which a session began do not influence the rate.
type budget struct {
	want   float64 // rate without a shortage
	share  float64 // of one core
	memory int64

	mu     sync.Mutex
	now    float64 // rate of the next interval
	pause  bool
	cutter chan struct{} // closed when running intervals must end
	used   usage

	saved  time.Duration // CPU time that was not used, below 0 if more was
	begins int           // sessions that may begin until the next look
	begun  bool          // a session started since the last look
	spent  float64       // sum of the shares of steady looks
	steady int           // number of these looks
}

// usage is what the agent has used.
type usage struct {
	CPU    time.Duration
	Memory int64
}

func newBudget(rate, share float64, memory int64) *budget {
	b := &budget{want: rate, share: share, memory: memory, now: rate, cutter: make(chan struct{})}
	b.saved = b.part(saveUp)
	b.permit()
	return b
}

// part returns the CPU time that the budget allows in d.
func (b *budget) part(d time.Duration) time.Duration { return time.Duration(b.share * float64(d)) }

// permit sets how many sessions may begin until the next look.
func (b *budget) permit() {
	if b.begins = 0; b.saved > 0 {
		b.begins = 1 + int(b.saved/beginCost)
	}
}

// begin reports whether a session may begin now.
func (b *budget) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause || b.begins == 0 {
		return false
	}
	b.begins--
	b.begun = true
	return true
}

func (b *budget) rate() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
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

// look adapts the rate to the share of a core that was used since the last look. It ends the
// running intervals if too much memory is used, or too much CPU time at the lowest rate. It
// returns a line for the user if recording pauses or resumes.
func (b *budget) look(share float64, u usage) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = u
	b.saved = min(b.saved+time.Duration((b.share-share)*float64(lookEvery)), b.part(saveUp))
	if b.begun {
		b.begun = false
	} else {
		b.spent, b.steady = b.spent+share, b.steady+1
	}
	line := b.decide(u)
	b.permit()
	return line
}

func (b *budget) decide(u usage) string {
	mean := b.spent / float64(max(b.steady, 1))
	ripe := b.steady >= looks
	if ripe {
		b.spent, b.steady = 0, 0
	}
	switch {
	case b.pause && u.Memory < b.memory*9/10 && b.saved >= b.part(saveUp)/2:
		b.pause = false
		return "recording continues"
	case b.pause:
	case u.Memory > b.memory || ripe && mean > b.share && b.now <= lowestRate:
		b.pause = true
		close(b.cutter)
		b.cutter = make(chan struct{})
		return fmt.Sprintf("recording pauses: %.1f %% of a CPU and %d MB are used, the budget is %.1f %% and %d MB",
			100*mean, u.Memory>>20, 100*b.share, b.memory>>20)
	case ripe && mean > b.share:
		b.now = max(lowestRate, b.now*max(0.25, 0.9*b.share/mean))
	case ripe && mean < b.share/2:
		b.now = min(b.want, b.now*min(4, 0.7*b.share/max(mean, 1e-6)))
	}
	return ""
}
