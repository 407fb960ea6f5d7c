package perfevent

import (
	"strconv"
	"strings"
)

// maxCPU bounds the number of a CPU.
const maxCPU = 1 << 13

// parseCPUs parses the kernel's list of CPUs, such as "0-3,8".
func parseCPUs(list string) (cpus []int, ok bool) {
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		low, err1 := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || low < 0 || high < low || high >= maxCPU || len(cpus) > maxCPU {
			return nil, false
		}
		for cpu := low; cpu <= high; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, true
}
