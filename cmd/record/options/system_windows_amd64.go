package options

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/sample/probe"
)

// noEvents returns why the runtime's events cannot be recorded, "" if they can. The library of the
// snapshot mode copies them, in a process that the tool starts. noEvents makes its path absolute.
func (o *Options) noEvents() string {
	if o.PID != 0 {
		return "the runtime's events need a library in the process, which only a command can get"
	}
	if abs, err := filepath.Abs(o.Profiler); err == nil && o.Profiler != "" {
		o.Profiler = abs
	}
	if _, err := os.Stat(o.Profiler); err != nil {
		return "the runtime's events are copied by the profiler library, which cannot be read: " + Reason(err)
	}
	return ""
}

// share makes the section that the command's first .NET process shares with the tool, if
// events are wanted.
func (o *Options) share() error {
	w, _ := o.Events.Parse()
	if w.Events == 0 || o.Mode != ModeProbe {
		return nil
	}
	f, err := probe.Make()
	if err != nil {
		return err
	}
	f.Want(w.Events, uint64(o.WaitMin))
	o.shared, o.section = f, f.Name
	return nil
}

// hasProbe: processes can be sampled from outside.
const hasProbe = true

// NeedsLibrary: no library of ours is needed in them.
const NeedsLibrary = false

// unprovenRuntime returns "" if the command's files show that its runtime can be sampled from
// outside, and otherwise why they do not. A running process is examined elsewhere.
func (o *Options) unprovenRuntime() string {
	if o.PID != 0 {
		return ""
	}
	path, err := exec.LookPath(o.Command[0])
	if err != nil && path == "" {
		return "the command's file was not found"
	}
	app := strings.TrimSuffix(path, filepath.Ext(path))
	if strings.EqualFold(filepath.Base(app), "dotnet") {
		if len(o.Command) < 2 || !strings.EqualFold(filepath.Ext(o.Command[1]), ".dll") {
			return "the runtime that the command starts is unknown"
		}
		app = strings.TrimSuffix(o.Command[1], filepath.Ext(o.Command[1]))
	}
	if v := frameworkOf(app + ".runtimeconfig.json"); v != 0 {
		if v < leastPublished {
			return fmt.Sprintf(".NET %d does not publish its structures (.NET %d and later do)", v,
				leastPublished)
		}
		return ""
	}
	for _, file := range []string{path, filepath.Join(filepath.Dir(path), "coreclr.dll")} {
		if f, err := pe.Open(file); err == nil && contract.PublishesPE(f) {
			return ""
		}
	}
	return "no runtime that publishes its structures (.NET 10 and later) was found for the command; --mode probe checks each process that it starts"
}

// leastPublished is the first .NET whose code tables a runtime for Windows publishes.
const leastPublished = 10

// maxConfig bounds a runtimeconfig.json.
const maxConfig = 1 << 20

// frameworkOf returns the major version of .NET that a program's runtimeconfig.json
// requests, or 0.
func frameworkOf(path string) int {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxConfig {
		return 0
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	type framework struct{ Name, Version string }
	var c struct {
		RuntimeOptions struct {
			Framework          framework
			Frameworks         []framework
			IncludedFrameworks []framework
		}
	}
	if json.Unmarshal(data, &c) != nil {
		return 0
	}
	o := &c.RuntimeOptions
	for _, f := range append(append([]framework{o.Framework}, o.Frameworks...), o.IncludedFrameworks...) {
		major, _, _ := strings.Cut(f.Version, ".")
		if v, err := strconv.Atoi(major); err == nil && v > 0 {
			return v
		}
	}
	return 0
}
