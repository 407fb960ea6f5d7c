package record

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/fakeprof"
	"github.com/seedwalk/seedwalk/unwind"
)

// The test binary is also the command that tests record: TARGET selects what it does. It plays the part of a
// .NET process with the profiler in it.
const envTarget = "SEEDWALK_TEST_TARGET"

func TestMain(m *testing.M) {
	if what := os.Getenv(envTarget); what != "" {
		os.Exit(fakeTarget(what))
	}
	os.Exit(m.Run())
}

func fakeTarget(what string) int {
	switch what {
	case "silent":
		return 5
	case "refusing":
		os.Stderr.WriteString("seedwalk: this runtime is too old: ...\n")
		os.WriteFile(os.Getenv(options.EnvRefused), nil, 0o600)
		return 5
	case "empty":
		send(greet, func(w *wire.Writer) { w.Bye("exit") })
		return 0
	case "empty with a note":
		send(greet, func(w *wire.Writer) { w.Note("the runtime has no threads yet"); w.Bye("exit") })
		return 0
	case "exit":
		send(greet, samples(10), func(w *wire.Writer) { w.Bye("exit") })
		return 3
	case "echo":
		send(greet, samples(1), func(w *wire.Writer) { w.Bye("exit") })
		io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintln(os.Stderr, "to stderr")
		return 0
	case "lingering":
		return lingering()
	case "late":
		return late()
	case "denied":
		send(greet, func(w *wire.Writer) {
			w.Stats(wire.StatDenied,
				12)
			w.Stats(wire.StatHeld, 5)
			w.Bye("exit")
		})
		return 0
	case "garbage":
		send(greet, samples(2)).Write([]byte{byte(wire.TypeNote), 1, 9})
		return 0
	case "parent":
		send(greet, samples(1), func(w *wire.Writer) { w.Bye("exit") })
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), envTarget+"=exit")
		child.Run()
		return 0
	case "endless":
		return endless()
	case "env":
		for _, kv := range os.Environ() {
			if strings.HasPrefix(kv, "CORECLR") || strings.HasPrefix(kv, "DOTNET_") ||
				strings.HasPrefix(kv, "SEEDWALK_") {
				fmt.Println(kv)
			}
		}
		return 0
	}
	if f := otherTargets[what]; f != nil {
		return f()
	}
	return 99
}

// otherTargets are the targets for one system only.
var otherTargets = map[string]func() int{}

// endless samples until the tool closes the connection, reports that, and ends.
func endless() int {
	c := send(greet, samples(4))
	w := wire.NewWriter(nil)
	for {
		w.Reset()
		w.Sample(&wire.Sample{TID: 70, TimeUnixNano: time.Now().UnixNano()})
		if _, err := c.Write(w.Bytes()); err != nil {
			return 11
		}
	}
}

// late connects long before it can sample, and then samples all the time.
func late() int {
	c := dialTool()
	time.Sleep(400 * time.Millisecond)
	w := wire.NewWriter(nil)
	greet(w)
	for {
		w.Sample(&wire.Sample{TID: 70, TimeUnixNano: time.Now().UnixNano()})
		if _, err := c.Write(w.Bytes()); err != nil {
			return 11
		}
		w.Reset()
		time.Sleep(time.Millisecond)
	}
}

// lingering sends the last figures after the tool has closed the connection.
func lingering() int {
	c := send(greet, samples(4))
	io.Copy(io.Discard, c)
	w := wire.NewWriter(nil)
	w.Sample(&wire.Sample{TID: 70, TimeUnixNano: time.Now().Add(time.Second).UnixNano()})
	w.Stats(wire.StatTries+"found/S_OK", 77)
	w.Bye("the tool wants no more")
	c.Write(w.Bytes())
	c.Close()
	return 0
}

func dialTool() net.Conn {
	c, err := fakeprof.Dial(os.Getenv(options.EnvSocket))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(97)
	}
	return c
}

func send(parts ...func(*wire.Writer)) net.Conn {
	c := dialTool()
	w := wire.NewWriter(nil)
	for _, p := range parts {
		p(w)
	}
	c.Write(w.Bytes())
	return c
}

func greet(w *wire.Writer) {
	w.Hello(&wire.Hello{PID: uint64(os.Getpid()), Arch: "amd64", Runtime: ".NET 9.0.5",
		StartUnixNano: 1_000_000_000, RateMilliHz: 50_000})
	w.Module(&wire.Module{ID: 1, Start: 0x1000, End: 0x9000, Bias: 0x1000,
		Path: "/usr/share/dotnet/libcoreclr.so", BuildID: "aa"})
	w.Module(&wire.Module{ID: 2, Start: 0x10000, End: 0x20000, Bias: 0x10000,
		Path: "/lib/libc.so.6", BuildID: "bb"})
	w.Method(&wire.Method{ID: 1, FunctionID: 5, Name: "App.Program.Main", Module: "App"})
	w.Thread(&wire.Thread{TID: 70, Name: "worker"})
	w.GapName(3, "no-unwind-info")
	var h wire.Histogram
	h.Add(1_000_000)
	h.Write(w, wire.StatSuspended)
	w.Stats(wire.StatRetries, 2)
	h.Write(w, wire.StatWalk)
	w.Stats(wire.StatTries+"found/S_OK", 4) // totals are sent again and again
	w.Stats(wire.StatTries+"found/S_OK", 5)
	w.Stats(wire.StatTries+"no-managed/E_FAIL", 9)
}

// samples appends n complete samples of one stack and one with a gap.
func samples(n int) func(*wire.Writer) {
	return func(w *wire.Writer) {
		frames := []wire.Frame{
			{Kind: unwind.KindNative, Trust: unwind.TrustContext,
				Flags: wire.FrameExact, Module: 2, IP: 0x10500},
			{Kind: unwind.KindNative, Trust: unwind.TrustFramePointer, Module: 1, IP: 0x1835},
			{Kind: unwind.KindStub, Trust: unwind.TrustCLR, IP: 0x777000},
			{Kind: unwind.KindManaged, Trust: unwind.TrustCLR, Method: 1, IP: 0x888000},
		}
		for i := 0; i < n; i++ {
			frames[3].IP++ // another instruction of the same method
			w.Sample(&wire.Sample{TID: 70, TimeUnixNano: 1_000_000_000 + int64(i)*20_000_000,
				WallNanos: 20_000_000, CPUNanos: 1000, Frames: frames})
		}
		w.Sample(&wire.Sample{TID: 71, TimeUnixNano: 1_000_000_000,
			WallNanos: 20_000_000, Gap: 3, Frames: []wire.Frame{
				{Kind: unwind.KindNative, Trust: unwind.TrustContext, Flags: wire.FrameExact, IP: 0x5},
				{Kind: unwind.KindGap, Gap: 3},
			}})
	}
}
