package options

// hasProbe reports whether there is a probe for this system.
const hasProbe = false

const NeedsLibrary = true

func (o *Options) unprovenRuntime() string { return "" }

func (o *Options) noEvents() string { return "" }

func (o *Options) share() error { return nil }
