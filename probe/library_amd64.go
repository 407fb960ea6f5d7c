package probe

import "embed"

//go:embed all:lib/amd64
var lib embed.FS

const libFolder = "lib/amd64/"
