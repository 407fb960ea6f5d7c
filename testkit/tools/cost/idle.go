package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// The kernel's clocks of the program and of the tool are read while both run, so their
// start and end do not count.
const (
	sleepers = 1000            // threads
	sleep    = 14000           // how long each sleeps, milliseconds
	settled  = 2 * time.Second // from the start of the last thread to the measurement
	asleep   = 8 * time.Second // of the measurement
)

// idling holds the results of the rounds of a setup.
type idling struct {
	own, tool []float64 // processor time of the program and of seedwalk, per second
	start     []float64 // processor time of seedwalk before the measurement
	calls     []float64 // system calls of seedwalk, for each thread, in all
}

// idle measures the cost of a thousand sleeping threads. The first part is the processor time
// of the program and of seedwalk while the threads sleep. The goal limits this part. The second
// part is the processor time of seedwalk before that: for its own start, the runtime's tables,
// and the name and first stack of each thread. It occurs once per recording.
func (o *options) idle() ([]goal, error) {
	fmt.Printf("\nidle, %d threads that sleep, %d rounds of %v: %% of a core\n", sleepers, idleRounds, asleep)
	var goals []goal
	alone := spread{}
	for _, s := range []setup{{}, {"probe", 100}, {"probe", 1000}, {"snapshot", 100}} {
		var m idling
		for range idleRounds {
			if err := o.idleRound(s, &m); err != nil {
				return nil, fmt.Errorf("idle, %v: %w", s, err)
			}
		}
		p, q := of(m.own), of(m.tool)
		fmt.Printf("%-18v the program %s", s, p.percent())
		if s.way != "" {
			fmt.Printf(", seedwalk %s, %.0f ms once before", q.percent(), 1000*of(m.start).mid)
		}
		if s.way == "probe" {
			fmt.Printf(", %.1f calls of the kernel a thread in all", of(m.calls).mid)
		}
		fmt.Println()
		switch s {
		case setup{}:
			alone = p
		case setup{"probe", 100}:
			got := interval{100 * (p.low - alone.high + q.low), 100 * (p.mid - alone.mid + q.mid),
				100 * (p.high - alone.low + q.high)} // at worst
			goals = append(goals, goal{"1,000 idle threads, 100 Hz: in all",
				100 * mayUse, false, got, percent})
		}
	}
	return goals, nil
}

func (o *options) idleRound(s setup, m *idling) error {
	w := &watched{done: make(chan struct{})}
	r, err := o.measure(program{"idle", sleep}, s, w)
	if err != nil {
		return err
	}
	if <-w.done; w.own == 0 && w.tool == 0 {
		return fmt.Errorf("the threads were not seen sleeping for %v", settled+asleep)
	}
	m.own, m.tool = append(m.own, w.own), append(m.tool, w.tool)
	m.start, m.calls = append(m.start, w.start), append(m.calls, r.calls/sleepers)
	return nil
}

// watched has the processor time while all threads slept, in shares of a core. It also has
// the tool's processor time before that, in seconds.
type watched struct {
	own, tool, start float64
	done             chan struct{}
}

// watch measures the program and the tool. tool is the PID of the started command. pidFile has
// the PID of the program; if it is "", the command is the program, and no tool runs.
func (w *watched) watch(tool int, pidFile string) {
	defer close(w.done)
	pid := tool
	for range 3000 {
		time.Sleep(5 * time.Millisecond)
		if pidFile != "" {
			b, _ := os.ReadFile(pidFile)
			if pid, _ = strconv.Atoi(strings.TrimSpace(string(b))); pid == 0 {
				continue
			}
		}
		if all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)); len(all) < sleepers {
			continue
		}
		time.Sleep(settled)
		begin, own, used := time.Now(), clock(pid), clock(tool)
		time.Sleep(asleep)
		seconds := time.Since(begin).Seconds()
		all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if len(all) < sleepers {
			return
		}
		w.own = (clock(pid) - own) / seconds
		if pidFile != "" {
			w.tool, w.start = (clock(tool)-used)/seconds, used
		}
		return
	}
}
