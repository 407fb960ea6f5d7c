package probe

import "embed"

//go:embed all:lib/arm64
var lib embed.FS

const libFolder = "lib/arm64/"
