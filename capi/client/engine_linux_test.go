package client

import (
	"encoding/binary"
	"io"
	"log"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/report/wire"
)

// TestMain runs the tests, or the helper: the library starts this program as its helper.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[0] == "seedwalk" && os.Args[1] == "engine" {
		engine()
		return
	}
	os.Exit(m.Run())
}

// engine sends heartbeats, and samples without frames until the program closes its end of the socket. The
// times of the samples count up.
func engine() {
	const socket, heartbeat = 3, 40 // a descriptor; an offset in the probe's header
	s, shared := os.NewFile(socket, "stream"), greeting(socket)
	go func() {
		w := wire.NewWriter(nil)
		w.Hello(&wire.Hello{PID: 1, Arch: "amd64"})
		for i := int64(0); ; i++ {
			var now unix.Timespec
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
			binary.NativeEndian.PutUint64(shared[heartbeat:], uint64(now.Nano()))
			w.Sample(&wire.Sample{TID: 9, TimeUnixNano: i})
			s.Write(w.Bytes())
			w.Reset()
			time.Sleep(time.Millisecond)
		}
	}()
	io.Copy(io.Discard, s)
}

// greeting maps the first page of the file that the library sends.
func greeting(socket int) []byte {
	b, control := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
	for {
		_, n, _, _, err := unix.Recvmsg(socket, b, control, 0)
		if err == unix.EAGAIN {
			time.Sleep(time.Millisecond)
			continue
		}
		m, err := unix.ParseSocketControlMessage(control[:n])
		if err != nil || len(m) != 1 {
			log.Fatal("no file: ", err)
		}
		files, err := unix.ParseUnixRights(&m[0])
		if err != nil {
			log.Fatal(err)
		}
		shared, err := unix.Mmap(files[0], 0, os.Getpagesize(),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			log.Fatal(err)
		}
		return shared
	}
}
