package paused_test

import (
	"fmt"

	"github.com/seedwalk/seedwalk/sample/paused"
)

// The stacks of all threads of process 4711.
func ExampleLookAt() {
	snapshot, err := paused.LookAt(4711, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range snapshot.Stacks {
		fmt.Println("thread", s.TID, snapshot.Names[s.TID])
		for _, f := range s.Frames {
			fmt.Printf("  %v %s %s+%#x\n", f.Kind, f.Name, f.Module, f.Offset)
		}
		if s.Gap != 0 {
			fmt.Println("  incomplete:", s.Gap)
		}
	}
	for _, stop := range snapshot.Stops {
		if stop.Err != nil {
			fmt.Println("thread", stop.TID, stop.Err)
		}
	}
}
