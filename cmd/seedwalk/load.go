package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/eventpipe/waits/session"
	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/recording"
	"github.com/seedwalk/seedwalk/report/trace"
)

const notRecording = "seedwalk: %s: neither a seedwalk recording (.swrec) nor a trace (.nettrace); " +
	"seedwalk record --output FILE.swrec writes one\n"

// isTraceName reports whether a file's name is that of a trace.
func isTraceName(path string) bool {
	name := strings.ToLower(strings.TrimSuffix(path, ".gz"))
	return strings.HasSuffix(name, ".nettrace") || strings.HasSuffix(name, ".netperf")
}

// loadProfile builds the profile of a recording, or of traces of one process. It returns nil if that fails.
// Problems are passed to say. metric is what the user wants to see, "" = samples. symbols are folders with
// symbol files.
func loadProfile(paths []string, metric string, symbols cli.SymbolList,
	say io.Writer) (*export.Profile, int) {
	t, code := trace.New(), cli.ExitOK
	for i, path := range paths {
		file, err := openInput(path)
		if err != nil {
			fmt.Fprintf(say, "seedwalk: %v\n", err)
			return nil, cli.ExitUnreadable
		}
		defer file.Close()
		in := bufio.NewReaderSize(file, 1<<16)
		if !trace.IsTrace(in) {
			if i > 0 || len(paths) > 1 {
				fmt.Fprintf(say, "seedwalk: %s is not a trace: several files must be traces of one process; seedwalk diff compares two recordings\n", path)
				return nil, cli.ExitUnreadable
			}
			return loadRecording(path, in, symbols, say)
		}
		if maps, err := os.Open(path + ".maps"); err == nil {
			session.ReadMaps(t.Names, maps, filepath.Dir(path))
			maps.Close()
		}
		if err := t.Read(in); err != nil {
			if errors.Is(err, trace.ErrNotTrace) {
				fmt.Fprintf(say, notRecording, path)
				return nil, cli.ExitUnreadable
			}
			fmt.Fprintf(say, "seedwalk: %s: %v\n", path, err)
			if errors.Is(err, trace.ErrOtherProcess) {
				return nil, cli.ExitUnreadable
			}
			code = cli.ExitWrong
		}
	}
	return buildTrace(t, paths[0], metric, code, say)
}

func openInput(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(path)
}

// buildTrace builds the profile of traces. If they lack the metric, it reports that.
func buildTrace(t *trace.Trace, path, metric string, code int, say io.Writer) (*export.Profile, int) {
	p := t.Profile()
	if p == nil {
		return nil, cli.ExitUnreadable
	}
	missing := t.Missing(cmp.Or(metric, "samples"))
	if missing == "" {
		return p, code
	}
	fmt.Fprintf(say, "seedwalk: %s: %s\n", path, missing)
	if metric != "" {
		return nil, cli.ExitWrong
	} else if p.Stats.Empty != "" { // else other events are shown
		code = cli.ExitWrong
	}
	return p, code
}

// loadRecording builds the profile of a recording. It returns nil if that fails.
func loadRecording(path string, in io.Reader, symbols cli.SymbolList, say io.Writer) (*export.Profile, int) {
	r, err := recording.Read(in)
	if errors.Is(err, recording.ErrFormat) {
		fmt.Fprintf(say, notRecording, path)
		return nil, cli.ExitUnreadable
	}
	if err != nil {
		fmt.Fprintf(say, "seedwalk: %s: %v\n", path, err)
		return nil, cli.ExitUnreadable
	}
	code := cli.ExitOK
	if r.Damage != nil {
		fmt.Fprintf(say, "seedwalk: %s: %v\n", path, r.Damage)
		code = cli.ExitWrong
	} else if !r.Complete {
		fmt.Fprintf(say, "seedwalk: %s: the recording has no end: seedwalk was killed, or still records\n", path)
		code = cli.ExitWrong
	}
	r.Names.Next = cli.NewNamer(symbols, nil)
	p := collect.Build(&r.Info, r.Processes, &r.Names)
	cli.ReportRefused(r.Names.Next, func(text string) { fmt.Fprintf(say, "seedwalk: %s\n", text) })
	return p, code
}
