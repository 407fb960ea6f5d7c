package dump

import (
	"errors"
	"math"

	"github.com/seedwalk/seedwalk/internal/wholefile"
)

// Open maps a core file of any size and reads it. The mapping is never removed.
func Open(path string) (*Core, error) {
	data, err := wholefile.Map(path, math.MaxInt)
	var refused *wholefile.Error
	if errors.As(err, &refused) {
		return nil, &Error{NotELF, "it is " + refused.Reason.String()}
	}
	if err != nil {
		return nil, err
	}
	return New(data)
}
