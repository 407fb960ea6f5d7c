package record

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// refusalLog names the log in which the CLR says why it refused the profiler.
const refusalLog = ", or the library failed to load (the event log has the CLR's reason: Application, source .NET Runtime)"

// endings describes the exit codes of processes that the system or the CLR ends. Source:
// ntstatus.h; dotnet/runtime src/coreclr/inc/corerror.xml for the CLR's own.
var endings = map[uint32]string{
	0xc0000005: "an access violation",
	0xc00000fd: "a stack overflow",
	0xc0000135: "a DLL was not found",
	0xc0000139: "a function was not found in a DLL",
	0xc000013a: "Ctrl-C",
	0xc0000142: "a DLL could not be started",
	0xc0000374: "a damaged heap",
	0xc0000409: "a failed check in its own code",
	0xe0434352: "an unhandled .NET exception",
	0x80131506: "the CLR, which found its own data damaged",
	0x8013135e: "the CLR: a profiler asked for the stack of a thread that had ended",
}

// exitNote reports how the command ended, "" if its exit code is 0.
func exitNote(code int) string {
	switch what := endings[uint32(code)]; {
	case code == 0:
		return ""
	case what != "":
		return fmt.Sprintf("the command was ended by %s (exit code %#x)", what, uint32(code))
	case uint32(code) >= 1<<31:
		return fmt.Sprintf("the command ended with exit code %#x", uint32(code))
	}
	return fmt.Sprintf("the command ended with exit code %d", code)
}

// endedAtOnce returns "": Windows has no exit codes of signals.
func (r *run) endedAtOnce() string { return "" }

// startRemedy reports what to do about a command that could not be started. what is the reason in better
// words than the system's, or "".
func startRemedy(command []string, err error) (what, remedy string) {
	switch {
	case errors.Is(err, windows.ERROR_ELEVATION_REQUIRED):
		return "it needs administrator rights",
			"record from a prompt that was started as administrator"
	case errors.Is(err, windows.ERROR_BAD_EXE_FORMAT),
		errors.Is(err, windows.ERROR_EXE_MACHINE_TYPE_MISMATCH):
		return "this Windows cannot run it", "check that it is a program for this machine"
	}
	if needsStarter(command[0]) {
		return "its file extension is not that of a program",
			"name the program that opens this file (PATHEXT lists the extensions of programs)"
	}
	return "", "check that it is a program"
}

// needsStarter reports whether a command that was not found is an existing file, which has no program's
// extension then.
func needsStarter(command string) bool {
	info, err := os.Stat(command)
	return err == nil && !info.IsDir()
}

const listenRemedy = "allow connections to 127.0.0.1 (firewall, security software)"

// forwarded are the signals that are caught. A console sends Ctrl-C to all its
// processes, the command included; the others end it with us.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

// forward does nothing: the command has received the signal too.
func (r *run) forward(os.Signal) {}

// followLeft does nothing: processes that outlive the command are recorded until it ends.
func (r *run) followLeft(<-chan struct{}) <-chan struct{} { return nil }

func (r *run) noteLeft() {}
