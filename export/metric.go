package export

// Metrics of a sample, as pprof and the page name them.
const (
	metricSamples = "samples"
	metricWall    = "wall"
	metricCPU     = "cpu"
)

// defaultMetric is what people should see first: where CPU time went, and samples only
// where it was not measured. Most threads of a server sleep, so that the samples of all
// of them show what waits and hide what works.
func (p *Profile) defaultMetric() string {
	for i := range p.Stacks {
		if p.Stacks[i].CPUNanos > 0 {
			return metricCPU
		}
	}
	return metricSamples
}
