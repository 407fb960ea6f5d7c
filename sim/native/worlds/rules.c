/* sample/probe/src/objects.c: the tool adds a rule while a sample looks for it. */
#include "world.h"

#include "objects.c"

enum { TYPE = 0x7000, RULE = 5 };
static char file[SW_BEFORE_RING + SW_RING_SIZE] __attribute__((aligned(4096)));
struct sw_header *sw_shared = (struct sw_header *)file;

void sw_copy(void *to, uint64_t from, uint64_t n) { sim_copy(to, from, n); }
uint64_t sw_checked(void *to, uint64_t from, uint64_t n) { return sim_copy(to, from, n), n; }

int world_threads(void) { return 2; }

UNSEEN static struct sw_rule *place(void) { return rules(sw_shared) + ((TYPE >> 3) * 0x9e3779b97f4a7c15ull >> 50 & (SW_RULES - 1)); }

UNSEEN void world_reset(void)
{
	memset(place(), 0, sizeof *place());
	sim_watch(place(), sizeof *place());
}

void world_thread(int i)
{
	if (i == 0) { /* File.SetRule */
		sim_store64(&place()->rule, RULE);
		sim_store64(&place()->table, TYPE);
		return;
	}
	uint64_t rule = rule_of(sw_shared, TYPE);
	sim_check(!rule || rule == RULE, "a rule is not whole");
	sim_outcome(rule ? "found" : "none");
}

void world_end(void) {}
