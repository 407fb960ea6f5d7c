/* The Go functions that capi/sampler_amd64.c calls. */
void swgoSamplerBegin(void);
int swgoSamplerRound(int32_t flags, uint64_t thread, seedwalk_sampler_result *out);
