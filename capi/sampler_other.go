//go:build !amd64

package main

import "C"

// swgoPutBack is for a program that goes on without the sampler.
//
//export swgoPutBack
func swgoPutBack() { restore() }
