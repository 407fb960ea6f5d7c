package doctor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/process/program"
)

// checks in the order they are shown.
var checks = []func(*patient) Finding{checkSystem, checkLibrary, checkLoads, checkRuntime, checkEnvironment,
	checkThreads, checkPort, checkOutput, checkCommand}

const (
	usualPlaces = `DOTNET_ROOT, dotnet on PATH, %ProgramFiles%\dotnet, %LocalAppData%\Microsoft\dotnet`
	whyLeast    = "earlier versions lack profiling interfaces that seedwalk needs"
)

func checkSystem(*patient) Finding {
	v := windows.RtlGetVersion()
	return judgeWindows(int(v.MajorVersion), int(v.MinorVersion), int(v.BuildNumber), runtime.GOARCH,
		options.NativeMachine(), wineVersion())
}

// wineVersion returns Wine's own version, "" on Windows.
func wineVersion() string {
	f := windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version")
	if f.Find() != nil {
		return ""
	}
	text, _, _ := f.Call()
	return windows.BytePtrToString(*(**byte)(unsafe.Pointer(&text)))
}

const (
	dllRemedy = "put what is missing beside the library or on PATH"
	loadWait  = time.Minute
)

// checkLoads lists the DLLs and functions that the library imports and this machine lacks, because the
// loader's own error does not name them. Then it has another process load the library: a failure in the CLR
// would not be visible.
func checkLoads(p *patient) Finding {
	const name = "library loads"
	path, err := filepath.Abs(p.profiler)
	if err != nil || libraryProblem(path) != "" {
		return Finding{} // checkLibrary reports it
	}
	missing, err := program.Missing(path, dllsBeside(filepath.Dir(path)))
	if err != nil {
		return Finding{name, Bad, err.Error(), "rebuild the library"}
	}
	if len(missing) > 0 {
		return Finding{name, Bad, "missing: " + strings.Join(missing, ", "), dllRemedy}
	}
	if why := loadInChild(path); why != "" {
		return Finding{name, Bad, why,
			"build the library on this machine, or find out what prevents loading it (a virus scanner?)"}
	}
	return Finding{name, Good, "it can be loaded", ""}
}

// dllsBeside resolves DLLs as the loader does for a library in dir.
func dllsBeside(dir string) func(string) (func(string) bool, bool) {
	return func(dll string) (func(string) bool, bool) {
		h, err := windows.LoadLibraryEx(filepath.Join(dir, dll), 0, windows.LOAD_WITH_ALTERED_SEARCH_PATH)
		if err != nil {
			h, err = windows.LoadLibrary(dll)
		}
		if err != nil {
			return nil, false
		}
		return func(name string) bool {
			_, err := windows.GetProcAddress(h, name)
			return err == nil
		}, true
	}
}

// envLoad makes this program load a library and do nothing else.
const envLoad = "SEEDWALK_DOCTOR_LOAD"

func init() {
	path := os.Getenv(envLoad)
	if path == "" {
		return
	}
	if _, err := windows.LoadLibraryEx(path, 0, windows.LOAD_WITH_ALTERED_SEARCH_PATH); err != nil {
		fmt.Fprintln(cli.Stdout, strings.TrimRight(err.Error(), "\r\n."))
		os.Exit(cli.ExitWrong)
	}
	os.Exit(cli.ExitOK)
}

// loadInChild reports why a process could not load the library, "" if it could.
func loadInChild(path string) string {
	exe, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envLoad+"="+path)
	stop := time.AfterFunc(loadWait, func() { cmd.Process.Kill() })
	defer stop.Stop()
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return ""
	case len(out) > 0:
		return strings.TrimSpace(string(out))
	case errors.As(err, &exit):
		return fmt.Sprintf("a process that loads it ends with %#x", uint32(exit.ExitCode()))
	}
	return err.Error()
}

// checkThreads suspends a thread, as sampling does. Security software may prevent that.
func checkThreads(*patient) Finding {
	const name = "rights"
	if what, err := suspendOne(); err != nil {
		return Finding{name, Bad,
			fmt.Sprintf("this program cannot sample a thread of its own: %s: %v", what, err),
			"find out what prevents processes from suspending threads (security software, a sandbox)"}
	}
	return Finding{name, Good, "threads can be suspended and their registers read", ""}
}

var (
	kernel32         = windows.NewLazySystemDLL("kernel32.dll")
	procCreateThread = kernel32.NewProc("CreateThread")
	procSleep        = kernel32.NewProc("Sleep")
	procSuspend      = kernel32.NewProc("SuspendThread")
	procGetContext   = kernel32.NewProc("GetThreadContext")
)

const (
	contextBytes    = 1232
	contextFlags    = 0x30     // offset of ContextFlags
	contextFull     = 0x10000b // CONTEXT_FULL of x86-64
	createSuspended = 4        // CREATE_SUSPENDED
)

// suspendOne suspends a thread, reads its registers, and resumes it. what is the call that failed. The thread
// is created suspended: a thread that has just started owns the loader's lock, and many calls here would wait
// for that lock.
func suspendOne() (what string, err error) {
	for _, p := range []*windows.LazyProc{procCreateThread, procSleep, procSuspend, procGetContext} {
		if err := p.Find(); err != nil {
			return p.Name, err
		}
	}
	var tid uint32
	h, _, err := procCreateThread.Call(0, 0, procSleep.Addr(), 0, createSuspended,
		uintptr(unsafe.Pointer(&tid)))
	if h == 0 {
		return "CreateThread", err
	}
	defer windows.CloseHandle(windows.Handle(h))
	defer windows.ResumeThread(windows.Handle(h))
	const rights = windows.THREAD_SUSPEND_RESUME | windows.THREAD_GET_CONTEXT |
		windows.THREAD_QUERY_INFORMATION
	thread, err := windows.OpenThread(rights, false, tid)
	if err != nil {
		return "OpenThread", err
	}
	defer windows.CloseHandle(thread)
	if before, _, err := procSuspend.Call(uintptr(thread)); uint32(before) == 1<<32-1 {
		return "SuspendThread", err
	}
	context := make([]byte, contextBytes+16)
	context = context[-uintptr(unsafe.Pointer(&context[0]))&15:] // 16-aligned
	*(*uint32)(unsafe.Pointer(&context[contextFlags])) = contextFull
	got, _, errContext := procGetContext.Call(uintptr(thread), uintptr(unsafe.Pointer(&context[0])))
	if _, err := windows.ResumeThread(thread); err != nil {
		return "ResumeThread", err
	}
	if got == 0 {
		return "GetThreadContext", errContext
	}
	return "", nil
}

// checkPort connects to a port of this machine, as the profiler does.
func checkPort(*patient) Finding {
	const name, remedy = "loopback port", "allow connections to 127.0.0.1 (firewall, security software)"
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return Finding{name, Bad, err.Error(), remedy}
	}
	defer l.Close()
	c, err := net.DialTimeout("tcp4", l.Addr().String(), 20*time.Second)
	if err != nil {
		return Finding{name, Bad, err.Error(), remedy}
	}
	c.Close()
	return Finding{name, Good, "127.0.0.1 can be connected to", ""}
}
