package probe

import _ "embed"

//go:embed lib/arm64/libseedwalk_probe.so
var library []byte
