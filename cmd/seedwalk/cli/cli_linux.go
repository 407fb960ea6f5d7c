package cli

import (
	"os"
	"path/filepath"
	"syscall"
)

// platformHelp returns the help text unchanged: it is written for Unix.
func platformHelp(s string) string { return s }

// EndSignals are the signals after which a command ends early and keeps its results so far.
var EndSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// runtimeFolders are where installers put .NET.
func runtimeFolders() []string {
	home, _ := os.UserHomeDir()
	return []string{"/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet",
		filepath.Join(home, ".dotnet")}
}
