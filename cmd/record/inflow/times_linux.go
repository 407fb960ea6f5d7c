package inflow

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
)

// clocks are the CPU times of a process and its threads in nanoseconds.
type clocks struct {
	process uint64 // 0 = unknown
	threads map[uint64]uint64
}

func measure(pid int) clocks {
	all, _ := procstat.CPUTime(pid)
	return clocks{uint64(all), threadTimes(pid)}
}

// maxEnded bounds the ended threads whose time is kept. The time of others is part of the process's.
const maxEnded = 1 << 20

// times is the CPU time of a process and its threads since a recording joined this one.
type times struct {
	first  *clocks // when this recording began to share
	before clocks
	gone   map[uint64]uint64 // reported times of threads that have ended, counted from first
	ran    uint64            // the last reported time of the process, counted from first; 0 = unknown
	cause  uint8             // the last reported cause of the process's time
}

func newTimes(pid int, first *clocks) *times {
	return &times{first: first, before: measure(pid), gone: map[uint64]uint64{}, cause: wire.CauseShort}
}

// ended takes a CPU time that this recording reports: of an ended thread, or of the process so far.
func (t *times) ended(m *wire.Usage) {
	switch {
	case m.TID == wire.ProcessTID:
		t.ran, t.cause = m.CPUNanos, m.Cause
	case len(t.gone) < maxEnded:
		t.gone[m.TID] += m.CPUNanos
	}
}

// write writes the CPU times from before until now. If now has no clock of the process, the last
// reported time replaces it. write writes nothing if the process had ended at before, and no time of the
// process if that is unknown.
func (t *times) write(w *wire.Writer, now clocks) {
	if t.before.process == 0 {
		return
	}
	if now.process == 0 && t.ran > 0 {
		now.process = t.first.process + t.ran
	}
	var sum uint64
	for tid, cpu := range now.threads {
		delete(t.gone, tid)
		n := cpu - min(t.before.threads[tid], cpu)
		sum += n
		w.Usage(&wire.Usage{TID: tid, CPUNanos: n})
	}
	all := now.process - min(t.before.process, now.process)
	for tid := range t.gone {
		n := t.since(tid)
		if now.process > 0 { // gone may contain a thread that ended earlier, reported late
			n = min(n, all-min(sum, all))
		}
		if sum += n; n > 0 {
			w.Usage(&wire.Usage{TID: tid, CPUNanos: n})
		}
	}
	if now.process > 0 {
		w.Usage(&wire.Usage{TID: wire.ProcessTID, CPUNanos: max(all, sum), Cause: t.cause})
	}
}

// since returns the CPU time of a thread that has ended, from before until its end.
func (t *times) since(tid uint64) uint64 {
	first, isOld := t.first.threads[tid]
	before, lived := t.before.threads[tid]
	if isOld && !lived { // it had ended before
		return 0
	}
	n := first + t.gone[tid]
	return n - min(before, n)
}

// threadTimes returns the CPU times of a process's threads in nanoseconds (proc(5), schedstat).
func threadTimes(pid int) map[uint64]uint64 {
	out := map[uint64]uint64{}
	tids, _ := live.Threads(pid)
	for _, tid := range tids {
		b, err := procstat.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
		first, _, _ := bytes.Cut(b, []byte(" "))
		n, err2 := strconv.ParseUint(string(first), 10, 64)
		if err == nil && err2 == nil {
			out[uint64(tid)] = n
		}
	}
	return out
}
