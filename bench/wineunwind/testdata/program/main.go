// Command program is what a Go program's unwind data looks like on Windows:
// its runtime is most of it.
package main

import (
	"fmt"
	"os"
	"sort"
)

func main() {
	args := os.Args[1:]
	sort.Slice(args, func(i, j int) bool { return args[i] < args[j] })
	fmt.Println(args)
}
