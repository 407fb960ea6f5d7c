package amd64_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/judgetest"
)

// Every field and code of real records is what its source prints.
func TestDecodeVectors(t *testing.T) { judgetest.PE(t, "amd64-decode") }
