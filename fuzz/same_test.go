package fuzz

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// sameAMD64 reports whether two steps say the same: what an unknown register
// holds is nobody's business.
func sameAMD64(a, b amd64.Registers) bool {
	for _, r := range []*amd64.Registers{&a, &b} {
		for i := range r.GPR {
			if r.Known>>i&1 == 0 {
				r.GPR[i] = 0
			}
		}
		for i := range r.XMM {
			if r.Known>>(16+i)&1 == 0 {
				r.XMM[i] = context.XMM{}
			}
		}
	}
	return a == b
}

// sameARM64 is sameAMD64 for ARM64.
func sameARM64(a, b arm64.Registers) bool {
	for _, r := range []*arm64.Registers{&a, &b} {
		for i := range r.X {
			if r.Known>>i&1 == 0 {
				r.X[i] = 0
			}
		}
		for i := range r.D {
			if r.Known>>(32+i)&1 == 0 {
				r.D[i] = 0
			}
		}
	}
	return a == b
}
