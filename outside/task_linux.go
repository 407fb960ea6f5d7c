package outside

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// counters are a thread's of /proc/PID/task/TID/schedstat: nanoseconds on a
// processor, nanoseconds waiting for one, times it was given one.
type counters struct{ cpu, wait, turns uint64 }

// task is a thread of the target.
type task struct {
	tid  uint32
	name string
	born int64 // when it was first seen
	read int64 // when its name was read again
	stat int   // its schedstat, open; -1 = opened at each visit

	listing uint64 // the last in which it was

	seen    bool
	last    counters
	visited int64  // when
	due     int64  // when to visit next
	every   int64  // nanoseconds between visits
	owed    int64  // wall time without a sample
	unarmed uint64 // processor time without a timer

	slot      int // in the probe, -1 = none
	armed     bool
	deaf      bool   // its timer is of a signal that another takes
	quiet     uint64 // processor time since a sample came of its timer
	refused   bool   // the kernel gave it no timer
	asked     bool   // a sample, by signal
	mute      int    // visits in vain, since it could not be asked
	low, high uint64 // its own stack
	thread    uint64 // the runtime's Thread, 0 = not known (yet)

	rest    bool // stack holds since last
	stack   held
	samples uint64
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

func parseWhere(s string) (where, uint64, uint64) {
	f := strings.Fields(s)
	if len(f) < 3 {
		return running, 0, 0
	}
	sp, err1 := strconv.ParseUint(f[len(f)-2], 0, 64)
	ip, err2 := strconv.ParseUint(f[len(f)-1], 0, 64)
	if err1 != nil || err2 != nil {
		return running, 0, 0
	}
	return blocked, sp, ip
}

// signals are the masks of /proc/PID/task/TID/status: bit signal-1.
type signals struct{ blocked, pending uint64 }

func readSignals(pid string, tid uint32) (s signals, ok bool) {
	b, err := os.ReadFile(taskFile(pid, tid, "status"))
	if err != nil {
		return s, false
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		v, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		switch {
		case err != nil:
		case key == "SigBlk":
			s.blocked = v
		case key == "SigPnd":
			s.pending = v
		}
	}
	return s, true
}
