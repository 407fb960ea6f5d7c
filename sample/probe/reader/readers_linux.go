package reader

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// Readers chooses the threads of a target that serve memory reads. It implements probe.Choice.
type Readers struct {
	pid    string
	sig    func() (legacy, realTime int) // the probe's signals; 0 = none
	list   []probe.Reader
	listed time.Time
	looked time.Time // when the process was last checked
	lives  bool
}

const (
	readersFor = time.Second          // how long a list is valid
	LivesFor   = 2 * time.Millisecond // how long a check that the process lives is valid
	LivesIdle  = 2 * time.Second      // the same while none of its threads has run
	maxReaders = 256                  // threads considered
	bestFew    = 3                    // the best threads, asked with either signal before all others
)

// unbothered are threads of the runtime whose waits a signal does not end. They run hardly any code of
// the program.
var unbothered = []string{".NET SynchManag", ".NET Finalizer", ".NET Tiered Com"}

// Reader implements probe.Choice.
func (c *Readers) Reader(n int) (a probe.Reader, ok bool) {
	if n == 0 && time.Since(c.listed) > readersFor || n == 1 { // the first one has not answered
		c.choose()
	}
	if n >= len(c.list) {
		return a, false
	}
	a = c.list[n]
	// After an exec no handler is left, and a real-time signal would kill the program.
	return a, a.Signal < firstRealTime || c.Living()
}

const firstRealTime = 32

// First reports whether a thread is the first one to be asked.
func (c *Readers) First(tid uint32) bool { return len(c.list) > 0 && c.list[0].TID == tid }

// choose lists the threads that do not block our signals, the best ones first.
func (c *Readers) choose() {
	c.listed = time.Now()
	c.list = c.list[:0]
	d, err := os.Open("/proc/" + c.pid + "/task")
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxReaders)
	var all []ranked
	for _, name := range names {
		tid, err := strconv.ParseUint(name, 10, 31)
		if err != nil {
			continue
		}
		if b, err := os.ReadFile(threads.Path(c.pid, uint32(tid), "status")); err == nil {
			all = append(all, rank(uint32(tid), string(b)))
		}
	}
	slices.SortFunc(all, func(a, b ranked) int { return a.rank - b.rank })
	legacy, realTime := c.sig()
	few := min(bestFew, len(all))
	for _, part := range [][]ranked{all[:few], all[few:]} {
		for _, sig := range []int{legacy, realTime} {
			for _, t := range part {
				if sig != 0 && !t.ended && t.blocked&(1<<(sig-1)) == 0 {
					c.list = append(c.list, probe.Reader{TID: t.tid, Signal: sig, Filtered: t.filtered})
				}
			}
		}
	}
}

// ranked is a thread that may be asked, with its rank.
type ranked struct {
	tid             uint32
	rank            int
	blocked         uint64
	filtered, ended bool
}

func rank(tid uint32, status string) ranked {
	r := ranked{tid: tid, rank: len(unbothered)}
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "Name":
			if i := slices.Index(unbothered, value); i >= 0 {
				r.rank = i
			}
		case "State":
			r.ended = strings.HasPrefix(value, "Z") || strings.HasPrefix(value, "X")
		case "SigBlk":
			r.blocked, _ = strconv.ParseUint(value, 16, 64)
		case "Seccomp":
			r.filtered = value != "0"
		}
	}
	return r
}

// Living implements probe.Choice: after an exec the probe's handlers are gone, and after the process's end
// all handlers.
func (c *Readers) Living() bool {
	if now := time.Now(); now.Sub(c.looked) > LivesFor {
		c.looked = now
		c.lives = c.caught()
	}
	return c.lives
}

func (c *Readers) caught() bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%s/status", c.pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), "\nSigCgt:")
	line, _, _ := strings.Cut(rest, "\n")
	caught, _ := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	legacy, realTime := c.sig()
	return legacy != 0 && caught&(1<<(legacy-1)) != 0 || realTime != 0 && caught&(1<<(realTime-1)) != 0
}
