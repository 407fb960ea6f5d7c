package diagnostics

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// Process returns a client of a process's default port, a named pipe.
func Process(pid int) (*Client, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return nil, &FindError{pid, NoProcess, nil}
	}
	if err == nil {
		windows.CloseHandle(h)
	}
	name := fmt.Sprintf(`\\.\pipe\dotnet-diagnostic-%d`, pid)
	return NewClient(pid, func() (io.ReadWriteCloser, error) { return openPipe(pid, name) }), nil
}

// openPipe waits while all instances of the pipe are in use: the runtime makes the next one after it has read
// a command.
func openPipe(pid int, name string) (io.ReadWriteCloser, error) {
	for try := 0; ; try++ {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, windows.ERROR_PIPE_BUSY) && try < 200:
			time.Sleep(10 * time.Millisecond)
		case errors.Is(err, fs.ErrPermission):
			return nil, &FindError{pid, Denied, err}
		default:
			return nil, &FindError{pid, NoServer, err}
		}
	}
}
