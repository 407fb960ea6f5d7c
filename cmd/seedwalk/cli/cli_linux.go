package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// platformHelp returns the help text unchanged: it is written for Unix.
func platformHelp(s string) string { return s }

var EndSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

func CommandCode(cmd *exec.Cmd) int {
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// runtimeFolders are where installers put .NET.
func runtimeFolders() []string {
	home, _ := os.UserHomeDir()
	return []string{"/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet", filepath.Join(home, ".dotnet")}
}
