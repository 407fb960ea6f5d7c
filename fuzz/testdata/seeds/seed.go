//go:build ignore

// The smallest Go program: its linker's .debug_frame is the seed.
package main

func main() { println("seed") }
