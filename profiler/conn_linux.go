package main

import (
	"os"
	"syscall"
	"time"
)

// sendLimit bounds how long the sampler waits for a tool that does not read.
const sendLimit = 5 * time.Second

// conn is a blocking unix socket. It does not use Go's poller: a blocking socket keeps the sampler on one
// thread, and MSG_NOSIGNAL spares the target SIGPIPE.
type conn int

func dial(path string) (conn, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	limit := syscall.NsecToTimeval(int64(sendLimit))
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &limit); err != nil {
		syscall.Close(fd)
		return -1, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		syscall.Close(fd)
		return -1, os.NewSyscallError("connect", err)
	}
	return conn(fd), nil
}

func (c conn) send(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.SendmsgN(int(c), b, nil, nil, syscall.MSG_NOSIGNAL)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("send", err)
		}
		b = b[n:]
	}
	return nil
}

// ended reports whether the tool has closed its side. The tool sends nothing before.
func (c conn) ended() bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(c), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n == 0 && err == nil
}

func (c conn) close() { syscall.Close(int(c)) }
