package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record"
	"github.com/seedwalk/seedwalk/cmd/record/continuous"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/symbol"
)

const agentHelp = `Usage: seedwalk agent [flags] --all
       seedwalk agent [flags] --pid PID | --command RE | --cgroup RE | --user NAME

Records .NET processes at a low rate until it is stopped, as they come and go (Linux, .NET 8 and
later). Each process gets one recording for each interval. A process must meet all of --command,
--cgroup, and --user; --pid adds others.

  --all              record every .NET process
  --pid PID          record this process; repeat it or separate with commas
  --command RE       record processes whose command line matches a regular expression
  --cgroup RE        record processes whose cgroup matches a regular expression
  --user NAME        record processes of a user, by name or number
  --rate HZ          samples per second and thread (default 19)
  --interval D       length of one recording, 5s to 1h (default 60s)
  --folder DIR       where recordings and waiting profiles are kept (default seedwalk-agent)
  --folder-mb N      room for recordings; the oldest are deleted; 0 keeps none (default 1024)
  --push URL         send each interval: http://HOST:PORT to Pyroscope, otlp+http://HOST:PORT or
                     otlp+grpc://HOST:PORT to an OpenTelemetry collector (https, otlp+https, otlp+grpcs)
  --push-token FILE  file with the bearer token of the backend
  --spool-mb N       room for profiles that wait for the backend, above 0 (default 256)
  --cpu PERCENT      the agent's budget, in percent of one CPU, at most 100 for each CPU. To keep it,
                     the agent lowers the rate, and pauses if that is not enough (default 5)
  --memory-mb N      the agent pauses while it uses more memory (default 512)
  --listen ADDR      serve /targets, /healthz, and /metrics there (default localhost:7019); ""
                     turns them off; an address that other machines reach needs --token
  --token FILE       file with the bearer token that requests need, at least 16 characters

Examples:
  seedwalk agent --all --push otlp+http://localhost:4318
  seedwalk agent --command 'dotnet .*shop' --interval 30s --folder /var/lib/seedwalk
  seedwalk report /var/lib/seedwalk/1790000000000-4711-shop.swrec

Exit code: 0 stopped by Ctrl-C or SIGTERM, 2 wrong usage, 125 the agent could not begin.
`

// agentFlags are the flags of agent.
type agentFlags struct {
	cfg                              continuous.Config
	pids                             cli.List
	command, cgroup, user            string
	listen, token, pushToken         string
	folderMB, spoolMB, memoryMB, cpu float64
}

func runAgent(args []string) int {
	var f agentFlags
	set := flag.NewFlagSet("agent", flag.ContinueOnError)
	set.BoolVar(&f.cfg.Rules.All, "all", false, "")
	set.Var(&f.pids, "pid", "")
	set.StringVar(&f.command, "command", "", "")
	set.StringVar(&f.cgroup, "cgroup", "", "")
	set.StringVar(&f.user, "user", "", "")
	set.Float64Var(&f.cfg.Rate, "rate", 19, "")
	f.cfg.Interval = time.Minute
	set.Var((*cli.Seconds)(&f.cfg.Interval), "interval", "")
	set.StringVar(&f.cfg.Folder, "folder", "seedwalk-agent", "")
	set.Float64Var(&f.folderMB, "folder-mb", 1024, "")
	set.StringVar(&f.cfg.Push, "push", "", "")
	set.StringVar(&f.pushToken, "push-token", "", "")
	set.Float64Var(&f.spoolMB, "spool-mb", 256, "")
	set.Float64Var(&f.cpu, "cpu", 5, "")
	set.Float64Var(&f.memoryMB, "memory-mb", 512, "")
	set.StringVar(&f.listen, "listen", "localhost:7019", "")
	set.StringVar(&f.token, "token", "", "")
	if code, done := cli.Parse(set, agentHelp, args); done {
		return code
	}
	err := f.check(set.Args())
	if err == nil {
		err = f.rules()
	}
	if err != nil {
		return cli.Usage("agent", err)
	}
	if err := f.run(); err != nil {
		return cli.Fail("agent", options.ExitRefused, err)
	}
	return cli.ExitOK
}

func (f *agentFlags) check(args []string) error {
	const most = 1 << 20 // megabytes
	cores := 100 * float64(runtime.NumCPU())
	c := &f.cfg
	c.CPU, c.FolderBytes, c.SpoolBytes, c.MemoryBytes = f.cpu/100, int64(f.folderMB*(1<<20)),
		int64(f.spoolMB*(1<<20)), int64(f.memoryMB*(1<<20))
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	case !(c.Rate >= 1 && c.Rate <= options.MaxRate):
		return fmt.Errorf("--rate %g is out of range: choose 1 to %d samples per second", c.Rate,
			options.MaxRate)
	case c.Interval < 5*time.Second || c.Interval > time.Hour:
		return errors.New("--interval must be 5s to 1h")
	case !(f.folderMB >= 0 && f.folderMB <= most && f.spoolMB > 0 && f.spoolMB <= most):
		return fmt.Errorf("--folder-mb must be 0 to %d megabytes, and --spool-mb above 0 and at most that", most)
	case !(f.cpu > 0 && f.cpu <= cores):
		return fmt.Errorf("--cpu must be above 0 and at most %g: percent of one CPU, and this machine has %d",
			cores, runtime.NumCPU())
	case !(f.memoryMB >= 64 && f.memoryMB <= most):
		return fmt.Errorf("--memory-mb must be 64 to %d", most)
	case c.FolderBytes == 0 && c.Push == "":
		return errors.New("--folder-mb 0 keeps no recordings: add --push")
	}
	if err := continuous.CheckPush(c.Push); c.Push != "" && err != nil {
		return err
	}
	if f.listen != "" && f.token == "" && !continuous.IsLocal(f.listen) {
		return fmt.Errorf("--listen %s is not a local address: add --token FILE, or listen on localhost:PORT", f.listen)
	}
	return nil
}

// rules makes the rules for processes.
func (f *agentFlags) rules() (err error) {
	r := &f.cfg.Rules
	for _, text := range f.pids {
		pid, err := strconv.Atoi(text)
		if err != nil || pid <= 0 {
			return fmt.Errorf("--pid %s: not a process ID", text)
		}
		if p, err := os.FindProcess(pid); err != nil ||
			errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone) {
			return fmt.Errorf("--pid %d: there is no such process", pid)
		}
		r.PIDs = append(r.PIDs, pid)
	}
	if r.Command, err = pattern("--command", f.command); err != nil {
		return err
	}
	if r.Cgroup, err = pattern("--cgroup", f.cgroup); err != nil {
		return err
	}
	if r.User = -1; f.user != "" {
		id := f.user
		if u, err := user.Lookup(f.user); err == nil {
			id = u.Uid
		}
		if r.User, err = strconv.Atoi(id); err != nil || r.User < 0 {
			return fmt.Errorf("--user %s: there is no such user", f.user)
		}
	}
	if !r.Set() {
		return errors.New("no processes are chosen; add --all, or choose with --pid, --command, --cgroup, or --user")
	}
	return nil
}

func pattern(name, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %v", name, err)
	}
	return re, nil
}

// tokenIn reads a token of at least the given length from a file. It returns "" if path is "".
func tokenIn(path string, least int) (string, error) {
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if len(token) < least || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("%s: the token must be one line of at least %d characters", path, least)
	}
	return token, nil
}

func (f *agentFlags) run() error {
	if runtime.GOOS != "linux" {
		return errors.New("this command needs Linux")
	}
	token, err := tokenIn(f.token, 16)
	if err != nil {
		return err
	}
	if f.cfg.PushToken, err = tokenIn(f.pushToken, 1); err != nil {
		return err
	}
	if f.cfg.Folder, err = filepath.Abs(f.cfg.Folder); err != nil {
		return err
	}
	f.cfg.Say = func(line string) { fmt.Fprintf(os.Stderr, "seedwalk agent: %s\n", line) }
	var names symbol.Cache
	f.cfg.Sample = sampleSession
	f.cfg.Record = func(i continuous.Interval) (int64, error) {
		return recordInterval(i,
			cli.NewNamer(nil, &names))
	}
	debug.SetMemoryLimit(f.cfg.MemoryBytes * 3 / 4)
	a, err := continuous.New(f.cfg)
	if err != nil {
		return err
	}
	defer a.Close()
	if f.listen != "" {
		srv, err := a.Serve(f.listen, token)
		if err != nil {
			return err
		}
		defer srv.Close()
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	a.Run(ctx.Done())
	return nil
}

// recordInterval makes one recording. If a file cannot be written at its place, the copy elsewhere is
// removed.
func recordInterval(i continuous.Interval, names options.Namer) (int64, error) {
	opt := options.Options{PID: i.PID, Rate: i.Rate, Part: options.Part{From: i.From, Until: i.Until},
		Probe: cli.FindProbe(), Profiler: cli.FindProfiler(), Namer: names,
		Stdout: os.Stderr, Stderr: os.Stderr}
	if i.Recording != "" {
		opt.Outputs = append(opt.Outputs, options.Output{Path: i.Recording, Format: export.RecordingFile})
	}
	if i.Profile != "" {
		opt.Outputs = append(opt.Outputs, options.Output{Path: i.Profile, Format: i.Format})
	}
	res, err := record.Run(opt)
	if err != nil {
		return 0, err
	}
	for _, w := range res.Written {
		if w.Err != nil {
			os.Remove(w.Path)
			err = fmt.Errorf("cannot write %s: %w", w.Output.Path, w.Err)
		}
	}
	if res.Profile == nil {
		return 0, errors.New("its samples have ended before this recording joined")
	}
	c := res.Profile.Stats.Clock
	i.Stretches(c != nil && c.Stretches > 0)
	return res.Profile.Stats.Samples, err
}

// sampleSession samples a process for the recordings of its intervals.
func sampleSession(s continuous.Session) error {
	res, err := record.Run(options.Options{PID: s.PID, Rate: s.Rate, WallEvery: time.Second, Relay: s.Ready,
		Stop: s.Stop, Probe: cli.FindProbe(), Profiler: cli.FindProfiler(),
		Stdout: os.Stderr, Stderr: os.Stderr})
	if err == nil && res.Farewell != "" {
		err = errors.New(res.Farewell)
	}
	return err
}
