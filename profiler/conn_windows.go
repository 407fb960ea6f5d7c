package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// sendLimit bounds how long the sampler waits for a tool that does not read.
const sendLimit = 5 * time.Second

// conn is a blocking socket to a port of this machine. The listener expects the secret that came with the
// port's number. conn does not use Go's poller: a blocking socket keeps the sampler on one thread.
type conn windows.Handle

// soSendTimeout is SO_SNDTIMEO of winsock2.h, milliseconds.
const soSendTimeout = 0x1005

// dial connects to the listener of record.listen: tcp:ADDRESS:PORT:SECRET.
func dial(where string) (conn, error) {
	rest, ok := strings.CutPrefix(where, "tcp:")
	i := strings.LastIndexByte(rest, ':')
	if !ok || i < 0 {
		return 0, fmt.Errorf("%q is not tcp:ADDRESS:PORT:SECRET", where)
	}
	to, err := netip.ParseAddrPort(rest[:i])
	if err != nil || !to.Addr().Is4() || !to.Addr().IsLoopback() {
		return 0, fmt.Errorf("%q is not a port of this machine", rest[:i])
	}
	var data windows.WSAData
	if err := windows.WSAStartup(0x202, &data); err != nil {
		return 0, os.NewSyscallError("WSAStartup", err)
	}
	// like socket(), but not inherited by the target's children
	const flags = windows.WSA_FLAG_OVERLAPPED | windows.WSA_FLAG_NO_HANDLE_INHERIT
	h, err := windows.WSASocket(windows.AF_INET, windows.SOCK_STREAM, windows.IPPROTO_TCP, nil, 0, flags)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	c := conn(h)
	limit := int32(sendLimit.Milliseconds())
	err = errors.Join(
		os.NewSyscallError("setsockopt",
			windows.Setsockopt(h, windows.SOL_SOCKET, soSendTimeout, (*byte)(unsafe.Pointer(&limit)), 4)),
		os.NewSyscallError("connect",
			windows.Connect(h, &windows.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})),
	)
	if err == nil {
		err = c.send(binary.LittleEndian.AppendUint32([]byte(rest[i+1:]), uint32(os.Getpid())))
	}
	if err != nil {
		c.close()
		return 0, err
	}
	return c, nil
}

// maxSend limits a piece to what a socket takes at once.
const maxSend = 1 << 16

func (c conn) send(b []byte) error {
	for len(b) > 0 {
		var n uint32
		buf := windows.WSABuf{Len: uint32(min(len(b), maxSend)), Buf: &b[0]}
		if err := windows.WSASend(windows.Handle(c), &buf, 1, &n, 0, nil, nil); err != nil {
			return os.NewSyscallError("send", err)
		}
		b = b[n:]
	}
	return nil
}

var wsaPoll = windows.NewLazySystemDLL("ws2_32.dll").NewProc("WSAPoll")

// ended reports whether the tool has closed its side. The tool sends nothing before.
func (c conn) ended() bool {
	const readable = 0x100 // POLLRDNORM of winsock2.h
	fd := struct {
		socket          windows.Handle
		events, revents int16
	}{windows.Handle(c), readable, 0}
	n, _, _ := wsaPoll.Call(uintptr(unsafe.Pointer(&fd)), 1, 0)
	return int32(n) == 1 && fd.revents != 0
}

func (c conn) close() { windows.Closesocket(windows.Handle(c)) }
