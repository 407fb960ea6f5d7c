// A Go program whose threads each call the same functions repeatedly.
package main

import (
	"fmt"
	"runtime"
)

//go:noinline
func alpha(n int) int { return beta(n) + 1 }

//go:noinline
func beta(n int) int { return gamma(n) + 1 }

//go:noinline
func gamma(n int) (sum int) {
	for i := range n {
		sum += i ^ sum
	}
	return sum
}

func work() {
	runtime.LockOSThread()
	for {
		alpha(1000)
	}
}

func main() {
	for range 2 {
		go work()
	}
	fmt.Println("ready")
	work()
}
