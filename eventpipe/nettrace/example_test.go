package nettrace_test

import (
	"fmt"
	"io"
	"os"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
)

// The events of a trace that have a stack.
func Example() {
	f, err := os.Open("../waits/testdata/liveexample.nettrace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	r := nettrace.NewReader(f)
	for {
		kind, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil { // damage; the events before it were delivered
			fmt.Println(err)
			break
		}
		if kind != nettrace.EventKind {
			continue
		}
		if e := r.Event(); e.Stack.Len() > 0 {
			fmt.Println(r.Trace().Time(e.Timestamp).Format("15:04:05.000"), e.Meta.Provider, e.Meta.EventID,
				"thread", e.Thread, e.Stack.Len(), "frames,", len(e.Payload), "bytes")
		}
	}
	fmt.Println(r.Counts().Events, "events,", r.Counts().Lost, "lost")
	// Output:
	// 22:38:54.518 Microsoft-Windows-DotNETRuntime 301 thread 27807 5 frames, 11 bytes
	// 22:38:54.518 Microsoft-Windows-DotNETRuntime 301 thread 27808 5 frames, 11 bytes
	// 22:38:54.519 Microsoft-Windows-DotNETRuntime 301 thread 27809 5 frames, 11 bytes
	// 22:38:54.519 Microsoft-Windows-DotNETRuntime 301 thread 27796 4 frames, 11 bytes
	// 22:38:57.515 Microsoft-Windows-DotNETRuntime 301 thread 27796 4 frames, 11 bytes
	// 842 events, 0 lost
}
