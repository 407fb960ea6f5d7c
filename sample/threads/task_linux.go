package threads

import (
	"bytes"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/stream"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// Counters are the values in /proc/PID/task/TID/schedstat: nanoseconds on a processor, nanoseconds of waiting
// for one, and the number of times it got one.
type Counters struct{ Cpu, Wait, Turns uint64 }

// Task is a thread of the target, with all that the engine knows about it. Only the engine's goroutine uses
// it. Fields that are a moment contain a Unix time in nanoseconds.
type Task struct {
	TID   uint32
	Name  string
	Born  int64 // when it was first seen
	read  int64 // when its name was last read
	Stat  int   // descriptor of its schedstat; -1 = opened at each poll
	Place int   // descriptor of its syscall; -1 = not open yet
	Call  int64 // number of the system call at the last WhereIs; negative if it was in none
	// StateFile is 1 + the descriptor of its stat; 0 = not open yet.
	StateFile int
	Drawn     Draw // for the random clock

	Listing uint64 // number of the last listing that contained it

	Seen      bool
	Ended     bool // its files are gone
	Last      Counters
	Counted   uint64 // what its event had counted when Last was read
	Polled    int64  // time of the last poll
	Due       int64  // time of the next poll
	Every     int64  // nanoseconds between polls
	Unsampled int64  // wall time without a sample, from polls that found it blocked
	Ran       int64  // the same from polls that found it running, minus the time of its timer's samples
	Unarmed   uint64 // CPU time without a timer or an event

	Birth        *cpuring.Birth // samples its first period
	Event        cpuEvent       // nil = none
	Eventless    bool           // the kernel refused an event
	KernelHits   bool           // its kernel time is sampled
	KernelEvery  uint64         // how many periods a sample of its kernel time represents
	KernelTime   uint64         // CPU time that samples in the kernel represent, since decided
	decided      uint64         // Weighed when KernelEvery was decided
	Copied       bool           // the kernel copies its stack for all samples; no signals are sent
	Often        bool           // it switches often
	WaitsOften   bool           // it waits very often
	Timed        bool           // it has a CPU timer because of that
	OwnTimer     bool           // it may have a timer for that, or has been asked to take or end one
	Stretched    bool           // it is sampled in stretches only, by such copies
	use          stretchUse
	Uncopied     bool      // its stack could not be walked from such a copy
	atCount      Counters  // Last at the last count of the switches
	undecided    bool      // the waits of a thread that often gets a processor have been counted once only
	turns        uint64    // Last.Turns at the last count of the waits
	waits        uint64    // how often it had waited by then; 0 = unknown
	timedFrom    uint64    // Spent when it got its CPU timer, or when inStep compared last
	weighedFrom  uint64    // Weighed then
	betweenTicks uint64    // BetweenTicks up to timedFrom, or until it lost its timer
	kernelBefore uint64    // InKernel when it got its timer
	eventFrom    uint64    // Spent when it lost its timer
	barredTill   time.Time // it gets no timer until then
	KernelLost   uint64    // the sampled kernel time whose stacks could not be walked
	Phase        Phase     // of the event
	First        uint64    // period of the event in the phase First, nanoseconds
	Base         uint64    // CPU time before the recording, nanoseconds
	AtEvent      uint64    // CPU time when the event was opened
	AtSwitch     uint64    // the event's count when its phase began
	Hits         uint64    // samples of CPU time; with an event, since AtSwitch
	Weighed      uint64    // CPU time that its samples represent
	recent       uint64    // what it used between the last two readings of its counters
	unread       uint64    // what it used after the last one, see ShareRest
	Sampled      uint64    // its CPU time at the last sample, for SinceSample
	Accounted    bool      // its CPU time has been sent

	Slot           int  // slot in the probe, -1 = none
	Slotless       bool // no slot of the probe was free
	Armed          bool
	IgnoresSignals bool   // the program takes the signal of its timer
	Blocks         bool   // it was seen to block the signal of its samples
	BlocksSince    uint64 // Spent when Blocks was set
	Looked         bool   // its signal mask was checked once it was settled
	LookedAt       int64  // when the signal mask of a copied thread was checked last
	Looks          int    // consecutive checks of this mask with the result StillBlocked
	StillBlocked   bool   // the last check found the signal blocked
	UnblockedAt    int64  // Unix time when signals that a fault had left blocked were restored
	Excused        uint64 // CPU time without samples that says nothing about the signal
	Left           bool   // a fault that became an exception has left its signals blocked
	Quiet          uint64 // CPU time since its last record or copy
	Refused        bool   // the kernel refused a timer
	Asked          bool   // a sample was requested by signal
	AsksAt         uint64 // position at that request
	AskAgain       int64  // earliest time of the next request, if it is armed
	Misses         int    // consecutive polls without a stack
	Unanswered     int    // consecutive polls at which it could not be asked
	Low, High      uint64 // its own stack
	Thread         uint64 // the runtime's Thread, 0 = unknown (yet)

	Rest     bool // Stack is unchanged since the last poll
	Stack    stream.Held
	IdleSpan *IdleSpan // of the process, at the last poll
	Samples  uint64
}

// A thread's wall time is the time between its polls. It goes to the next stack of the thread in the same
// state, so it does not matter which stacks are easier to read.

// maxUnsampled is how much wall time may wait for a stack of a blocked thread, nanoseconds.
const maxUnsampled = int64(2e8)

// Worked returns the wall time that a sample of CPU time represents, at least cpu.
func (t *Task) Worked(cpu int64) (wall int64) {
	wall = max(cpu, t.Ran)
	t.Ran -= wall
	if t.Unsampled > maxUnsampled { // the thread never blocks for long enough
		wall += t.Stood()
	}
	return wall
}

// Stood returns the wall time that a sample of a blocked thread represents. It corrects for polls that found
// the thread blocked more often than it was.
func (t *Task) Stood() (wall int64) {
	if wall, t.Unsampled = t.Unsampled, 0; t.Ran < 0 || !t.Armed {
		wall, t.Ran = wall+t.Ran, 0
	}
	if wall < 0 {
		wall, t.Ran = 0, wall
	}
	return wall
}

// StoodTill returns how long after its last poll a resting thread has certainly rested, and moves the last
// poll to that time.
func (t *Task) StoodTill() (wall int64) {
	if !t.Rest || t.IdleSpan == nil || t.IdleSpan.Till <= t.Polled {
		return 0
	}
	wall = t.IdleSpan.Till - t.Polled
	t.Polled = t.IdleSpan.Till
	return wall
}

// Rename reports whether to read the thread's name again. A new thread has its creator's name and soon sets
// its own; an old thread hardly ever does. So the intervals grow with its age.
func (t *Task) Rename(now int64) bool {
	if now-max(t.read, t.Born) < max(t.read-t.Born, 1e8) {
		return false
	}
	t.read = now
	return true
}

func parseCounters(b []byte) (c Counters, ok bool) {
	fields := [3]*uint64{&c.Cpu, &c.Wait, &c.Turns}
	i := 0
	for _, ch := range b {
		switch {
		case ch >= '0' && ch <= '9' && i < 3:
			*fields[i] = *fields[i]*10 + uint64(ch-'0')
		case ch == ' ':
			i++
		}
	}
	return c, i == 2
}

func Path(pid string, tid uint32, name string) string {
	return "/proc/" + pid + "/task/" + strconv.FormatUint(uint64(tid), 10) + "/" + name
}

// Where is what /proc/PID/task/TID/syscall reports about a thread.
type Where uint8

const (
	Running Where = iota
	Blocked
	Ended
	Hidden // not permitted
)

func whereOf(err error) Where {
	if err == unix.EPERM || err == unix.EACCES {
		return Hidden
	}
	return Ended
}

// parseWhere reads the last two of three or more fields.
func parseWhere(b []byte) (Where, uint64, uint64) {
	b, ip, ok1 := lastHex(b)
	b, sp, ok2 := lastHex(b)
	if !ok1 || !ok2 || len(bytes.TrimSpace(b)) == 0 {
		return Running, 0, 0
	}
	return Blocked, sp, ip
}

// lastHex returns the last field, and the bytes before it.
func lastHex(b []byte) (rest []byte, v uint64, ok bool) {
	b = bytes.TrimRight(b, " \n")
	i := bytes.LastIndexByte(b, ' ')
	digits, ok := bytes.CutPrefix(b[i+1:], []byte("0x"))
	if !ok || len(digits) == 0 || len(digits) > 16 {
		return nil, 0, false
	}
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return nil, 0, false
		}
	}
	return b[:i+1], v, true
}

// signals are the masks in /proc/PID/task/TID/status: bit signal-1.
type signals struct{ Blocked, Pending uint64 }

// parseSignals reads the masks. It returns false if the file is longer than b or is not such a file.
func parseSignals(b []byte) (s signals, ok bool) {
	pending, ok1 := numberIn(b, "\nSigPnd:", 16)
	blocked, ok2 := numberIn(b, "\nSigBlk:", 16)
	return signals{blocked, pending}, ok1 && ok2
}

// numberIn returns the number of the line that begins with key.
func numberIn(b []byte, key string, base int) (v uint64, ok bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return 0, false
	}
	line, _, whole := bytes.Cut(b[i+len(key):], []byte("\n"))
	v, err := strconv.ParseUint(string(bytes.TrimSpace(line)), base, 64)
	return v, whole && err == nil
}

// Rested stores a stack that is valid until the thread runs.
func (t *Task) Rested(gap merge.Gap, frames []wire.Frame) {
	t.Rest = true
	t.Stack.Gap = uint8(gap)
	t.Stack.Frames = append(t.Stack.Frames[:0], frames...)
}

// Read stores what the thread's counters are now.
func (t *Task) Read(c Counters) {
	t.recent = c.since(t.Last).Cpu
	t.Last = c
	if t.Event != nil {
		if n, err := t.Event.Count(); err == nil {
			t.Counted = n
		}
	}
}

// Spent returns the thread's CPU time within the recording when its counters were last read, in
// nanoseconds.
func (t *Task) Spent() uint64 {
	cpu := max(t.Last.Cpu, t.Drawn.Before.Cpu)
	return cpu - min(t.Base, cpu)
}

// Period returns the period of the thread's event, in nanoseconds. It is up to 1/16 more or less than the
// usual one. If all threads had the usual one, work that repeats after a third of it, say, would always be
// sampled at the same three places.
func (t *Task) Period(usual int64) uint64 {
	const part, golden = 16, 0x9e3779b9 // 2^32 divided by the golden ratio spreads successive numbers
	p := uint64(usual)
	return p - p/part + 2*p/part*uint64(t.TID*golden>>16)>>16
}

// SpentToEnd returns Spent and what the thread has used after its counters were last read, by its event or by
// ShareRest. After the thread's end, its counters are gone and its event is not. The event's count up to that
// reading is not used: it includes the time that a hypervisor took from the thread, on a busy host up to as
// much again.
func (t *Task) SpentToEnd() uint64 {
	spent := t.Spent() + t.unread
	if t.Event != nil {
		if n, err := t.Event.Count(); err == nil {
			spent += n - min(n, t.Counted)
		}
	}
	return spent
}

// Uncounted reports whether no event counts what the thread uses until its end: it has a CPU timer, or is
// between two stretches.
func (t *Task) Uncounted() bool { return t.Event == nil && (t.Timed || t.Stretched) }

// SinceSample returns the thread's CPU time since its last sample, from 1 to most, and notes it.
func (t *Task) SinceSample(cpu, most uint64) uint64 {
	last := max(t.Base, t.Sampled)
	t.Sampled = max(cpu, last)
	return min(max(t.Sampled-last, 1), most)
}

// InKernel returns the part of spent that was in the kernel and has no samples. It adds up two parts. One is
// the time of switches between threads, which the event does not count. The other is the share of expected
// samples that are missing: even if the kernel permits samples of itself, it blocks interrupts at the start
// and the end of a switch. Without an event, or if too few samples are expected, InKernel returns the part of
// the time before the thread got a CPU timer, or 0: a timer's samples include the kernel.
func (t *Task) InKernel(spent, period uint64) uint64 {
	if t.Event == nil || t.Phase != Full {
		return t.kernelBefore
	}
	n, err := t.Event.Count()
	expected := (n - min(t.AtSwitch, n)) / period
	if err != nil || expected < YoungPeriods {
		return t.kernelBefore
	}
	spent -= min(t.eventFrom, spent)
	passed := t.Last.Cpu - min(t.AtEvent, t.Last.Cpu) // since the event was opened
	switching := min(passed-min(t.Counted, passed), spent)
	return t.kernelBefore + spent -
		uint64(float64(spent-switching)*float64(min(t.Hits, expected))/float64(expected))
}

// cpuEvent is a perf event on one thread's CPU time. Its overflow sends the thread a signal. The event
// closes when the tool dies.
type cpuEvent interface {
	FD() int
	SetPeriod(nanos uint64) error // restarts the period
	// CPU time since the event was opened; works after the thread's end
	Count() (nanos uint64, err error)
	Close() error
}

// Phase is how a thread's event gives samples.
type Phase uint8

// The phases of an event. A new thread is Young, an old one begins with First, and both end with Full.
const (
	Full  Phase = iota // each overflow of the full period is a sample
	Young              // the period is short, and few overflows are samples
	// The period is random. The next overflow is a sample. Of later ones, the kept share is the random period
	// divided by the full one.
	First
)

// Block notes that the thread blocks the signal of its samples.
func (t *Task) Block() {
	if !t.Blocks {
		t.Blocks, t.BlocksSince = true, t.SpentToEnd()
	}
}

// Draw is the request to a thread at a random moment.
type Draw struct {
	Open   bool
	Before Counters
	Wake   int64 // Unix time
	Weight uint64
}

const (
	// YoungPeriods is the CPU time, in periods, for which a thread is young.
	YoungPeriods = 16
	SlowTick     = 10000000 // nanoseconds: the tick of a kernel with 100 Hz
)

// State returns the letter after a thread's name in its stat. The name may contain any bytes.
func State(stat []byte) byte {
	if i := bytes.LastIndexByte(stat, ')'); i >= 0 && i+2 < len(stat) {
		return stat[i+2]
	}
	return 0
}

// DrawWeight returns how many threads each checked thread represents if drawn of all threads are checked: a
// whole number that is right on average.
func DrawWeight(all, drawn int, random func(n int) int) uint64 {
	weight := uint64(all / drawn)
	if random(drawn) < all%drawn {
		weight++
	}
	return weight
}

// Missed returns how much of located, the CPU time that samples should represent, has no samples. All
// are nanoseconds. If less than least is missing, that may be chance, and Missed returns 0. Missing samples
// alone prove no loss: if a thread runs for less than 0.1 ms at a time, its event loses up to a third of the
// hits.
func (t *Task) Missed(located, least uint64) uint64 {
	seen := t.Weighed - min(t.KernelLost, t.Weighed)
	missed := located - min(seen, located)
	if missed < least {
		return 0
	}
	return missed
}
