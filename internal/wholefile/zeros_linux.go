//go:build amd64 || arm64

package wholefile

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Variables of the handler. The handler is in assembly because it also runs when Go's runtime faults.
var (
	pageSize    uint64
	nextHandler uintptr // Go's own handler, for all other causes of SIGBUS
	zeroPages   uint64
)

// onBus is the handler of SIGBUS. If the page at the fault's address is not in its file, onBus maps zeros
// there, and the read is tried again.
func onBus()

var _, _ = onBus, nextHandler // the kernel and the assembly use them

func onBusAddress() uintptr

// ReadCutAsZeros installs the handler. From then on, a mapped page that cannot be read is replaced by zeros:
// its file was cut off, or the disk failed. Without the handler, reading such a page ends the process. A
// program calls ReadCutAsZeros at its start. A library must not: signal handlers belong to the program.
var ReadCutAsZeros = sync.OnceFunc(func() {
	var action struct { // the kernel's struct sigaction
		handler  uintptr
		flags    uint64
		restorer uintptr
		mask     uint64
	}
	call := func(change, old unsafe.Pointer) bool {
		_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGBUS), uintptr(change),
			uintptr(old), unsafe.Sizeof(action.mask), 0, 0)
		return e == 0
	}
	const ignored = 1 // SIG_DFL is 0, SIG_IGN is 1
	if !call(nil, unsafe.Pointer(&action)) || action.handler <= ignored {
		return
	}
	pageSize, nextHandler = uint64(os.Getpagesize()), action.handler
	action.handler = onBusAddress()
	call(unsafe.Pointer(&action), nil)
})

// ZeroPages returns how many missing pages of mapped files were read.
func ZeroPages() uint64 { return atomic.LoadUint64(&zeroPages) }
