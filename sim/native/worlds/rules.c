/* sample/probe/src/objects.c: the tool adds a rule while a sample looks for it.
 * MOVES 1: a collection begins while a sample searches a stack, and puts another object in the place of one. */
#include "world.h"

#include "objects.c"

enum { TYPE = 0x7000, OTHER = 0x8000, RETURN = 0x9000, RULE = 5, WORDS = 2 };
static char file[SW_BEFORE_RING + SW_RING_SIZE] __attribute__((aligned(4096)));
static uint64_t object;
static int32_t changes;
struct sw_header *sw_shared = (struct sw_header *)file;

void sw_copy(void *to, uint64_t from, uint64_t n) { sim_copy(to, from, n); }

UNSEEN uint64_t sw_checked(void *to, uint64_t from, uint64_t n)
{
	sim_syscall((void *)from, SIM_READ, "a checked read");
	memcpy(to, (void *)from, n <= sizeof object ? n : sizeof object);
	return n <= sizeof object ? n : sizeof object;
}

int world_threads(void) { return 2; }

UNSEEN static struct sw_rule *place(uint64_t table) { return rules(sw_shared) + ((table >> 3) * 0x9e3779b97f4a7c15ull >> 50 & (SW_RULES - 1)); }

UNSEEN void world_reset(void)
{
	*place(TYPE) = (struct sw_rule){MOVES * TYPE, (uint64_t)SW_RULE_START << 32};
	*place(RETURN) = (struct sw_rule){RETURN, (uint64_t)SW_RULE_FRAME << 32 | (uint64_t)WORDS << 16};
	sim_watch(place(TYPE), sizeof *place(TYPE));
	sim_watch(&object, sizeof object);
	sim_watch(&changes, sizeof changes);
	object = TYPE;
	changes = 0;
	sw_shared->heap = (uint64_t)&object;
	sw_shared->heap_size = sizeof object;
	sw_shared->heap_changes = (uint64_t)&changes;
	sw_shared->code = RETURN;
}

/* collect is a collection of the runtime. */
UNSEEN static void collect(void)
{
	sim_syscall(&changes, SIM_WRITE, "a collection begins");
	changes = 1;
	sim_syscall(&object, SIM_WRITE, "another object is there");
	object = OTHER;
}

UNSEEN static void search(void)
{
	static struct sw_slot s;
	struct entry out[SW_OBJECTS];
	uint64_t regs[SW_REGS] = {0}, stack[WORDS] = {RETURN, (uint64_t)&object};
	sw_objects(sw_shared, &s, regs, stack, sizeof stack, out);
	for (int i = 0; i < SW_OBJECTS; i++)
		sim_check((out[i].what & ~7ull) != OTHER, "an object is taken for another");
	sim_outcome(out[0].at == SW_OBJECT_MOVED ? "moved" : "found");
}

void world_thread(int i)
{
	if (MOVES) {
		if (i == 0)
			collect();
		else
			search();
		return;
	}
	if (i == 0) { /* File.SetRule */
		sim_store64(&place(TYPE)->rule, RULE);
		sim_store64(&place(TYPE)->table, TYPE);
		return;
	}
	uint64_t rule = rule_of(sw_shared, TYPE);
	sim_check(!rule || rule == RULE, "a rule is not whole");
	sim_outcome(rule ? "found" : "none");
}

void world_end(void) {}
