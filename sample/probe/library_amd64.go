package probe

import _ "embed"

//go:embed lib/amd64/libseedwalk_probe.so
var library []byte
