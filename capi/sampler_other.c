//go:build !amd64

/* The sampler is for x86-64: elsewhere every call returns SEEDWALK_UNSUPPORTED. */
#include "types.h"

#include "../profiler/host/platform.h"

#define NONE(name, ...) SW_EXPORT int name(__VA_ARGS__) { return SEEDWALK_UNSUPPORTED; }

#pragma GCC diagnostic ignored "-Wunused-parameter"
NONE(seedwalk_sampler_open, const seedwalk_sampler_options *o)
NONE(seedwalk_sampler_close, void)
NONE(seedwalk_sampler_thread_created, uint64_t thread)
NONE(seedwalk_sampler_thread_assigned, uint64_t thread, uint32_t os_thread)
NONE(seedwalk_sampler_thread_destroyed, uint64_t thread)
NONE(seedwalk_sampler_thread_named, uint64_t thread, uint32_t units, const void *name)
NONE(seedwalk_sampler_module_loaded, uint64_t module)
NONE(seedwalk_sampler_module_unloading, uint64_t module)
NONE(seedwalk_sampler_code_changed, uint64_t function)
NONE(seedwalk_sampler_sample, const seedwalk_sampler_request *q, seedwalk_sampler_result *r)
NONE(seedwalk_sampler_next, const seedwalk_stack **stack)
NONE(seedwalk_sampler_copy, uint64_t tag)
