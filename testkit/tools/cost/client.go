package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// beside are the setups that -client compares: nothing, a profiler with the client library, and a recording.
var beside = []setup{{}, {"client", 100}, {"probe", 100}}

// guid is the class of the example profiler, which accepts any.
const guid = "{11111111-2222-3333-4444-555555555555}"

// clients compares the client library with a recording and with nothing, in whole processes of each program.
func (o *options) clients() error {
	dir, err := os.MkdirTemp("", "seedwalk-cost")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := o.buildProfiler(dir); err != nil {
		return err
	}
	for _, p := range programs {
		if !o.wanted(p.name) {
			continue
		}
		rows, err := o.rows(p, beside)
		if err != nil {
			return err
		}
		printBeside(p, rows)
	}
	return nil
}

// buildProfiler links the example profiler with the client library.
func (o *options) buildProfiler(dir string) error {
	archive, capi := filepath.Join(dir, "libseedwalk_client.a"), filepath.Join(o.root, "capi")
	o.profiler = filepath.Join(dir, "libclient.so")
	for _, argv := range [][]string{
		{filepath.Join(capi, "client", "build.sh"), "archive", archive},
		{"gcc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-I" + capi, "-I" + filepath.Join(capi, "client"),
			"-o", o.profiler, filepath.Join(capi, "examples", "client.c"), archive, "-lpthread"},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", argv[0], err, out)
		}
	}
	return nil
}

// clientEnv loads the example profiler into a program.
func (o *options) clientEnv(s setup, out string) ([]string, error) {
	engine, err := filepath.Abs(filepath.Join(o.root, "out/bin/seedwalk"))
	return append(os.Environ(), "CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER="+guid,
		"CORECLR_PROFILER_PATH="+o.profiler, "SEEDWALK_ENGINE="+engine, "SAMPLER_OUT="+out,
		fmt.Sprint("MINE_HERTZ=", s.rate)), err
}

// helperTime waits for the end of a process's helper and returns its processor time in seconds. The last few
// milliseconds are missing, because the helper is not a child.
func helperTime(pid int) (seconds float64) {
	const look = 5 * time.Millisecond
	helper := 0
	for ; helper == 0; time.Sleep(look) {
		if _, err := os.Stat(fmt.Sprint("/proc/", pid)); err != nil {
			return 0
		}
		helper = helperOf(pid)
	}
	for ; ; time.Sleep(look) {
		now := clock(helper)
		if now < seconds || now == 0 {
			return seconds
		}
		seconds = now
	}
}

// helperOf returns the process ID of a process's helper, or 0 for a process without one.
func helperOf(pid int) int {
	want := []byte(fmt.Sprintf("\x00engine\x00--pid\x00%d\x00", pid))
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if b, _ := os.ReadFile(line); bytes.Contains(b, want) {
			n, _ := strconv.Atoi(filepath.Base(filepath.Dir(line)))
			return n
		}
	}
	return 0
}

// printBeside prints medians over the rounds, each compared with the same round without sampling.
func printBeside(p program, rows []series) {
	alone := rows[0]
	fmt.Printf("\n%s, whole processes, %d rounds: medians (least to greatest); alone %.2f s, %.2f s of processor time\n",
		p.name, len(alone), alone.each(func(r *result) float64 { return r.wall }).mid,
		alone.each(func(r *result) float64 { return r.cpu }).mid)
	fmt.Printf("%-18s %28s %28s %28s\n", "", "longer %", "program: more CPU %", "program and seedwalk %")
	for i := 1; i < len(rows); i++ {
		longer := rows[i].against(alone, func(a, b *result) float64 { return a.wall/b.wall - 1 })
		program := rows[i].against(alone, func(a, b *result) float64 { return a.cpu/b.cpu - 1 })
		both := rows[i].against(alone, func(a, b *result) float64 { return (a.cpu+a.used)/b.cpu - 1 })
		fmt.Printf("%-18v %28s %28s %28s\n", beside[i], longer.percent(), program.percent(), both.percent())
	}
}
