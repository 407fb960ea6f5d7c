package stream

import (
	"github.com/seedwalk/seedwalk/report/wire"
)

// Held is a stack that is sent again while its thread rests.
type Held struct {
	Frames []wire.Frame
	Gap    uint8
	wire.Activity
}
