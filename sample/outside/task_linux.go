package outside

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/cpuring"
)

// counters are a thread's of /proc/PID/task/TID/schedstat: nanoseconds on a
// processor, nanoseconds waiting for one, times it was given one.
type counters struct{ cpu, wait, turns uint64 }

// task is a thread of the target.
type task struct {
	tid   uint32
	name  string
	born  int64 // when it was first seen
	read  int64 // when its name was read again
	stat  int   // its schedstat, open; -1 = opened at each visit
	place int   // its syscall, open; -1 = not yet
	// stateFile is its stat, open: the descriptor and 1; 0 = not yet.
	stateFile int
	drawn     draw // of the random clock

	listing uint64 // the last in which it was

	seen    bool
	ended   bool // its files are gone
	last    counters
	visited int64  // when
	due     int64  // when to visit next
	every   int64  // nanoseconds between visits
	owed    int64  // wall time without a sample, of visits that found it standing
	ran     int64  // the same where they found it running, less what samples of its timer stood for
	unarmed uint64 // processor time without a timer or an event

	birth      *cpuring.Birth // samples its first period
	event      cpuEvent       // nil = none
	eventless  bool           // the kernel gives it none
	kernelHits bool           // its time in the kernel is sampled too
	kernelLost uint64         // of that, with stacks that could not be walked to their end
	young      bool           // the event has a short period, and few overflows are samples
	base       uint64         // processor time before the recording, nanoseconds
	atEvent    uint64         // processor time when the event was opened
	atSwitch   uint64         // the event's count when the thread was no longer young
	hits       uint64         // samples of processor time; of an event since atSwitch
	accounted  bool           // its processor time has been sent

	slot           int  // in the probe, -1 = none
	slotless       bool // the probe had none left
	armed          bool
	ignoresSignals bool   // its timer is of a signal that another takes
	left           bool   // a fault that became an exception has left its signals blocked
	quiet          uint64 // processor time since a sample came of its timer
	refused        bool   // the kernel gave it no timer
	asked          bool   // a sample, by signal
	asksAt         uint64 // where it stood when that was needed
	askAgain       int64  // not before, if it is armed
	vain           int    // visits without a stack, one after the other
	unanswered     int    // visits in a row at which it could not be asked
	low, high      uint64 // its own stack
	thread         uint64 // the runtime's Thread, 0 = not known (yet)

	rest    bool // stack holds since last
	stack   held
	lull    *idleSpan // of the process, at the last visit
	samples uint64
}

// A thread's wall time is that of its visits, and goes to the stack that was next to be seen
// of a thread that did the same: which stacks are seen more often does not matter.

// owedMost is how much wall time may wait for a stack of a thread that stands, nanoseconds.
const owedMost = int64(2e8)

// worked is the wall time that a sample of processor time stands for, at least that.
func (t *task) worked(cpu int64) (wall int64) {
	wall = max(cpu, t.ran)
	t.ran -= wall
	if t.owed > owedMost { // it never stands for long enough
		wall += t.stood()
	}
	return wall
}

// stood is the wall time that a sample of a thread that stands still stands for: visits may
// have found it standing more often than it did.
func (t *task) stood() (wall int64) {
	if wall, t.owed = t.owed, 0; t.ran < 0 || !t.armed {
		wall, t.ran = wall+t.ran, 0
	}
	if wall < 0 {
		wall, t.ran = 0, wall
	}
	return wall
}

// stoodTill is the time after its last visit for which a thread that rested then has surely
// gone on to rest. It has been visited up to there now.
func (t *task) stoodTill() (wall int64) {
	if !t.rest || t.lull == nil || t.lull.till <= t.visited {
		return 0
	}
	wall = t.lull.till - t.visited
	t.visited = t.lull.till
	return wall
}

// rename reports whether the name is to be read again. A new thread has its
// creator's name and gives itself another soon, an old one hardly ever: so the
// waits grow with its age.
func (t *task) rename(now int64) bool {
	if now-max(t.read, t.born) < max(t.read-t.born, 1e8) {
		return false
	}
	t.read = now
	return true
}

func parseCounters(b []byte) (c counters, ok bool) {
	fields := [3]*uint64{&c.cpu, &c.wait, &c.turns}
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

func taskFile(pid string, tid uint32, name string) string {
	return "/proc/" + pid + "/task/" + strconv.FormatUint(uint64(tid), 10) + "/" + name
}

// where is what /proc/PID/task/TID/syscall says of a thread.
type where uint8

const (
	running where = iota
	blocked
	ended
	hidden // not permitted
)

func whereOf(err error) where {
	if err == unix.EPERM || err == unix.EACCES {
		return hidden
	}
	return ended
}

// parseWhere reads the last two fields, if there are three or more.
func parseWhere(b []byte) (where, uint64, uint64) {
	b, ip, ok1 := lastHex(b)
	b, sp, ok2 := lastHex(b)
	if !ok1 || !ok2 || len(bytes.TrimSpace(b)) == 0 {
		return running, 0, 0
	}
	return blocked, sp, ip
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
type signals struct{ blocked, pending uint64 }

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
