package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// platformHelp replaces what is different on Windows in a help text.
func platformHelp(s string) string { return windowsWords.Replace(s) }

var windowsWords = strings.NewReplacer(
	"output, signals, and the exit code", "output, Ctrl-C, and the exit code",
	"128+n signal n ended it", "130 a second Ctrl-C",
	"./MyService", "MyService.exe",
	"2>/dev/null | sort -k2", "2>nul | sort",
	"../lib, or", `..\lib, or`,
)

var EndSignals = []os.Signal{os.Interrupt}

// runtimeFolders are where installers put .NET for 64-bit programs.
func runtimeFolders() (out []string) {
	for _, f := range []struct{ variable, below string }{{"ProgramFiles", "dotnet"},
		{"ProgramW6432", "dotnet"}, {"LocalAppData", `Microsoft\dotnet`}} {
		if root := os.Getenv(f.variable); root != "" {
			out = append(out, filepath.Join(root, f.below))
		}
	}
	return out
}
