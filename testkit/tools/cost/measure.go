package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// result has the figures of one run.
type result struct {
	wall, cpu float64 // of the program, seconds
	tool      float64 // processor time of seedwalk, in shares of a core
	p50, p99  float64 // microseconds for which a thread was stopped
	rate      float64 // reached share of the requested rate; 0 = unknown
	used      float64 // processor time of seedwalk, seconds
	samples   float64 // taken in the program itself
	taken     float64 // samples of all kinds per second
	signals   float64 // received by the program, per second
	calls     float64 // system calls of seedwalk about threads
	memory    int     // resident KiB of seedwalk's in the program; 0 = unknown
}

// measure runs a program once. If idle is not nil, idle.watch runs meanwhile on another goroutine.
func (o *options) measure(p program, s setup, idle *watched) (r result, err error) {
	dir, err := os.MkdirTemp("", "seedwalk-cost")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	amount := fmt.Sprint(int(float64(p.amount) * o.scale))
	args := []string{filepath.Join(o.root, "out/bin/swhost"), filepath.Join(o.root, o.runtime),
		filepath.Join(o.root, "out/samples/Cost.exe"), p.name, amount}
	pid := filepath.Join(dir, "pid")
	if s.way != "" && s.way != "client" {
		args = append([]string{filepath.Join(o.root, "out/bin/seedwalk"), "record", "--json", "--mode",
			s.way, "--rate", fmt.Sprint(s.rate),
			"--pid-file", pid, "--output", filepath.Join(dir, "out.json"), "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if s.way == "client" {
		if cmd.Env, err = o.clientEnv(s, filepath.Join(dir, "out")); err != nil {
			return r, err
		}
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	if idle != nil {
		seen := pid
		if s.way == "" {
			seen = ""
		}
		go idle.watch(cmd.Process.Pid, seen)
	}
	done, helper := make(chan int), make(chan float64, 1)
	if s.way == "client" {
		go func() { helper <- helperTime(cmd.Process.Pid) }()
	}
	go func() { done <- watch(pid, s.way != "" && s.way != "client") }()
	err = cmd.Wait()
	took := time.Since(begin).Seconds()
	r.memory = <-done
	if err != nil {
		return r, fmt.Errorf("%w\n%s", err, errs.String())
	}
	all := 0.0 // the program's processor time from its start on
	if n, _ := fmt.Sscanf(out.String(), "wall %f cpu %f all %f", &r.wall, &r.cpu, &all); n != 3 {
		return r, fmt.Errorf("the program said %q", out.String())
	}
	switch s.way {
	case "":
	case "client":
		r.used = <-helper
	default:
		r.summary(errs.Bytes(), s)
		used := cmd.ProcessState.UserTime() +
			cmd.ProcessState.SystemTime() // the program's, too, whose parent waited for it
		r.used = used.Seconds() - all
		r.tool = r.used / took
	}
	return r, nil
}

// summary reads the recording's own figures.
func (r *result) summary(text []byte, s setup) {
	var sum struct {
		Stats struct {
			Samples   float64
			Suspended struct {
				Count int     `json:"count"`
				P50   float64 `json:"p50_ns"`
				P99   float64 `json:"p99_ns"`
			}
			Counters struct {
				Timed    float64
				StillP50 float64 `json:"still_p50_ns"`
				StillP99 float64 `json:"still_p99_ns"`
				Overruns float64
				Calls    float64
				Signals  float64
				Busy     float64 `json:"busy_ns"`
			}
		}
		Duration float64 `json:"duration_ns"`
	}
	i := bytes.Index(text, []byte(`{"format"`))
	if i < 0 || json.Unmarshal(bytes.TrimSpace(text[i:]), &sum) != nil {
		return
	}
	if sum.Duration > 0 {
		r.taken, r.signals = sum.Stats.Samples/(sum.Duration/1e9),
			sum.Stats.Counters.Signals/(sum.Duration/1e9)
	}
	r.p50, r.p99 = sum.Stats.Suspended.P50/1e3, sum.Stats.Suspended.P99/1e3
	if c := sum.Stats.Counters; c.Busy > 0 {
		r.p50, r.p99 = c.StillP50/1e3, c.StillP99/1e3
		r.rate = (c.Timed + c.Overruns) / (c.Busy / 1e9) / float64(s.rate)
		r.samples, r.calls = c.Timed, c.Calls
	} else if s.way == "snapshot" && sum.Duration > 0 {
		r.rate = float64(sum.Stats.Suspended.Count) / (sum.Duration / 1e9) / float64(s.rate)
	}
}

// watch reads how much resident memory of a running program belongs to seedwalk.
func watch(file string, ours bool) (kib int) {
	if !ours {
		return 0
	}
	for range 40 {
		time.Sleep(50 * time.Millisecond)
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n := resident(strings.TrimSpace(string(b))); n > kib {
			kib = n
		}
	}
	return kib
}

func resident(pid string) (kib int) {
	b, err := os.ReadFile("/proc/" + pid + "/smaps")
	if err != nil {
		return 0
	}
	mine := false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 5 && strings.Contains(f[0], "-"):
			mine = strings.Contains(line, "seedwalk")
		case mine && len(f) == 3 && f[0] == "Pss:":
			n, _ := strconv.Atoi(f[1])
			kib += n
		}
	}
	return kib
}
