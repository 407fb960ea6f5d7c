package main

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Each wrong value is refused with the name of its flag.
func TestAgentFlags(t *testing.T) {
	good := func() agentFlags {
		f := agentFlags{listen: "localhost:0", folderMB: 1, spoolMB: 1, memoryMB: 64, cpu: 1}
		f.cfg.Rate, f.cfg.Interval, f.cfg.Rules.All = 19, time.Minute, true
		return f
	}
	for want, change := range map[string]func(f *agentFlags){
		"":                         func(*agentFlags) {},
		"--rate":                   func(f *agentFlags) { f.cfg.Rate = 0.5 },
		"--interval":               func(f *agentFlags) { f.cfg.Interval = time.Second },
		"--folder-mb":              func(f *agentFlags) { f.folderMB = -1 },
		"--spool-mb":               func(f *agentFlags) { f.spoolMB = 1e9 },
		"--cpu must be above 0":    func(f *agentFlags) { f.cpu = 0 },
		"and at most ":             func(f *agentFlags) { f.cpu = 1e9 },
		"--spool-mb above 0":       func(f *agentFlags) { f.spoolMB = 0 },
		"1 to 65535":               func(f *agentFlags) { f.cfg.Push = "http://localhost:99999" },
		"--memory-mb":              func(f *agentFlags) { f.memoryMB = 1 },
		"keeps no recordings":      func(f *agentFlags) { f.folderMB = 0 },
		"--push must":              func(f *agentFlags) { f.cfg.Push = "localhost:4040" },
		"add --token FILE":         func(f *agentFlags) { f.listen = ":7019" },
		"--pid x":                  func(f *agentFlags) { f.pids = cli.List{"x"} },
		"--command: error parsing": func(f *agentFlags) { f.command = "(" },
		"--cgroup: error parsing":  func(f *agentFlags) { f.cgroup = "[" },
		"no such user":             func(f *agentFlags) { f.user = "nobody like this" },
		"no processes are chosen":  func(f *agentFlags) { f.cfg.Rules.All = false },
	} {
		f := good()
		change(&f)
		err := f.check(nil)
		if err == nil {
			err = f.rules()
		}
		if got := ""; err != nil && !strings.Contains(err.Error(), want) || (err == nil) != (want == got) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestAgentToken(t *testing.T) {
	path := filepath.Join(tempdir.New(t), "token")
	for text, want := range map[string]string{"0123456789abcdef\n": "0123456789abcdef",
		"short": "", "0123456789abcdef\nx": ""} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		got, err := tokenIn(path, 16)
		expect.True(t, got == want && (err == nil) == (want != ""), "%q: %q, %v", text, got, err)
	}
}

// A reason why the agent cannot begin is printed in one line that names the cause.
func TestAgentCannotBegin(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED-CHECK: the agent needs Linux")
	}
	dir := tempdir.New(t)
	file := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(file, []byte("short"), 0o600))
	busy := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer busy.Close()
	for want, change := range map[string]func(f *agentFlags){
		"file: not a directory":  func(f *agentFlags) { f.cfg.Folder = file },
		"address already in use": func(f *agentFlags) { f.listen = busy.Addr().String() },
		"at least 16 characters": func(f *agentFlags) { f.token = file },
		"none: no such file":     func(f *agentFlags) { f.pushToken = filepath.Join(dir, "none") },
		"invalid port":           func(f *agentFlags) { f.listen = "localhost:99999" },
	} {
		f := agentFlags{listen: "localhost:0"}
		f.cfg.Folder, f.cfg.Rate, f.cfg.CPU, f.cfg.MemoryBytes = dir, 19, 1, 1<<40
		change(&f)
		err := f.run()
		expect.True(t, err != nil && strings.Contains(err.Error(), want) &&
			!strings.Contains(err.Error(), "\n"), "%q: %v", want, err)
	}
}
