package threads

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/stream"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// Counters are a thread's of /proc/PID/task/TID/schedstat: nanoseconds on a
// processor, nanoseconds waiting for one, times it was given one.
type Counters struct{ Cpu, Wait, Turns uint64 }

// Task is a thread of the target.
type Task struct {
	TID   uint32
	Name  string
	Born  int64 // when it was first seen
	read  int64 // when its name was read again
	Stat  int   // its schedstat, open; -1 = opened at each visit
	Place int   // its syscall, open; -1 = not yet
	// StateFile is its stat, open: the descriptor and 1; 0 = not yet.
	StateFile int
	Drawn     Draw // of the random clock

	Listing uint64 // the last in which it was

	Seen    bool
	Ended   bool // its files are gone
	Last    Counters
	Visited int64  // when
	Due     int64  // when to visit next
	Every   int64  // nanoseconds between visits
	Owed    int64  // wall time without a sample, of visits that found it standing
	Ran     int64  // the same where they found it running, less what samples of its timer stood for
	Unarmed uint64 // processor time without a timer or an event

	Birth      *cpuring.Birth // samples its first period
	Event      cpuEvent       // nil = none
	Eventless  bool           // the kernel gives it none
	KernelHits bool           // its time in the kernel is sampled too
	KernelLost uint64         // of that, with stacks that could not be walked to their end
	Young      bool           // the event has a short period, and few overflows are samples
	Base       uint64         // processor time before the recording, nanoseconds
	AtEvent    uint64         // processor time when the event was opened
	AtSwitch   uint64         // the event's count when the thread was no longer young
	Hits       uint64         // samples of processor time; of an event since atSwitch
	Accounted  bool           // its processor time has been sent

	Slot           int  // in the probe, -1 = none
	Slotless       bool // the probe had none left
	Armed          bool
	IgnoresSignals bool   // its timer is of a signal that another takes
	Left           bool   // a fault that became an exception has left its signals blocked
	Quiet          uint64 // processor time since a sample came of its timer
	Refused        bool   // the kernel gave it no timer
	Asked          bool   // a sample, by signal
	AsksAt         uint64 // where it stood when that was needed
	AskAgain       int64  // not before, if it is armed
	Vain           int    // visits without a stack, one after the other
	Unanswered     int    // visits in a row at which it could not be asked
	Low, High      uint64 // its own stack
	Thread         uint64 // the runtime's Thread, 0 = not known (yet)

	Rest    bool // stack holds since last
	Stack   stream.Held
	Lull    *IdleSpan // of the process, at the last visit
	Samples uint64
}

// A thread's wall time is that of its visits, and goes to the stack that was next to be seen
// of a thread that did the same: which stacks are seen more often does not matter.

// owedMost is how much wall time may wait for a stack of a blocked thread, nanoseconds.
const owedMost = int64(2e8)

// Worked is the wall time that a sample of processor time represents, at least that.
func (t *Task) Worked(cpu int64) (wall int64) {
	wall = max(cpu, t.Ran)
	t.Ran -= wall
	if t.Owed > owedMost { // it is never blocked for long enough
		wall += t.Stood()
	}
	return wall
}

// Stood is the wall time that a sample of a blocked thread represents: visits may
// have found it standing more often than it did.
func (t *Task) Stood() (wall int64) {
	if wall, t.Owed = t.Owed, 0; t.Ran < 0 || !t.Armed {
		wall, t.Ran = wall+t.Ran, 0
	}
	if wall < 0 {
		wall, t.Ran = 0, wall
	}
	return wall
}

// StoodTill is the time after its last visit for which a thread that rested then has surely
// gone on to rest. It has been visited up to there now.
func (t *Task) StoodTill() (wall int64) {
	if !t.Rest || t.Lull == nil || t.Lull.Till <= t.Visited {
		return 0
	}
	wall = t.Lull.Till - t.Visited
	t.Visited = t.Lull.Till
	return wall
}

// Rename reports whether the name is to be read again. A new thread has its
// creator's name and gives itself another soon, an old one hardly ever: so the
// waits grow with its age.
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

// Where is what /proc/PID/task/TID/syscall says of a thread.
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

// parseWhere reads the last two fields, if there are three or more.
func parseWhere(b []byte) (Where, uint64, uint64) {
	b, ip, ok1 := lastHex(b)
	b, sp, ok2 := lastHex(b)
	if !ok1 || !ok2 || len(bytes.TrimSpace(b)) == 0 {
		return Running, 0, 0
	}
	return Blocked, sp, ip
}

// lastHex is the last field, and what is before it.
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

// signals are the masks of /proc/PID/task/TID/status: bit signal-1.
type signals struct{ Blocked, Pending uint64 }

// parseSignals reads them; false: the file goes on behind b, or is none.
func parseSignals(b []byte) (s signals, ok bool) {
	pending, ok1 := maskIn(b, "\nSigPnd:")
	blocked, ok2 := maskIn(b, "\nSigBlk:")
	return signals{blocked, pending}, ok1 && ok2
}

// maskIn is the hexadecimal number of a line that begins so.
func maskIn(b []byte, key string) (v uint64, ok bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return 0, false
	}
	line, _, whole := bytes.Cut(b[i+len(key):], []byte("\n"))
	v, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64)
	return v, whole && err == nil
}

// Rested keeps a stack for as long as the thread does not run.
func (t *Task) Rested(gap merge.Gap, frames []wire.Frame) {
	t.Rest = true
	t.Stack.Gap = uint8(gap)
	t.Stack.Frames = append(t.Stack.Frames[:0], frames...)
}

// Spent is the thread's processor time within the recording, as far as it is known, in
// nanoseconds. Of a thread that has ended an event knows it to the end.
func (t *Task) Spent() uint64 {
	cpu := t.Last.Cpu
	if t.Event != nil {
		if n, err := t.Event.Count(); err == nil {
			cpu = max(cpu, t.AtEvent+n)
		}
	}
	return cpu - min(t.Base, cpu)
}

// InKernel is the part of spent in the kernel, where an event may take no samples: what they
// are short of. Of a young thread they are too few to say.
func (t *Task) InKernel(spent, period uint64) uint64 {
	if t.Event == nil || t.Young {
		return 0
	}
	n, err := t.Event.Count()
	expected := (n - min(t.AtSwitch, n)) / period
	if err != nil || expected < YoungPeriods || t.Hits >= expected {
		return 0
	}
	return spent - uint64(float64(spent)*float64(t.Hits)/float64(expected))
}

// cpuEvent is a perf event of one thread's processor time. Its overflow sends the thread a
// signal. The tool's death closes it.
type cpuEvent interface {
	FD() int
	SetPeriod(nanos uint64) error     // restarts the period
	Count() (nanos uint64, err error) // processor time since it was opened; works after the thread's end
	Close() error
}

// Draw is what a thread was asked at a random moment.
type Draw struct {
	Open   bool
	Before Counters
	Wake   int64 // Unix time
	Weight uint64
}

const (
	// youngPeriods is the processor time, in periods, for which a thread is young.
	YoungPeriods = 16
	SlowTick     = 10000000 // nanoseconds: of a kernel with 100 Hz
)

// State is the letter behind a thread's name in its stat; the name may have anything in it.
func State(stat []byte) byte {
	if i := bytes.LastIndexByte(stat, ')'); i >= 0 && i+2 < len(stat) {
		return stat[i+2]
	}
	return 0
}
