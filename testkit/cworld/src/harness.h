/* Put before the product's C by the compiler (-include): each of its atomics is a
 * step that the test's scheduler orders. One thread runs at a time. Behind a store and an exchange,
 * others may run: plain stores that follow it come later. */
#ifndef SEEDWALK_HARNESS_H
#define SEEDWALK_HARNESS_H

void sw_point(const char *what); /* others may run before what follows */
void sw_wait(const char *what);  /* nothing changes until another has taken a step */
void sw_fault(const char *what); /* what must not happen */

/* A world: what each thread does, and the memory as it is before. */
void world_reset(void);
void world_thread(int i);

#define __atomic_load_n(p, o) (sw_point("load " #p), __atomic_load_n(p, o))
#define __atomic_store_n(p, v, o) (sw_point("store " #p), __atomic_store_n(p, v, o), sw_point("after"))
#define __atomic_exchange_n(p, v, o) (sw_point("exchange " #p), __atomic_exchange_n(p, v, o))
#define __atomic_compare_exchange_n(p, e, v, w, s, f) __extension__({ sw_point("compare " #p); int sw_did = __atomic_compare_exchange_n(p, e, v, w, s, f); sw_point("after"); sw_did; })
#define __atomic_fetch_add(p, v, o) (sw_point("add " #p), __atomic_fetch_add(p, v, o))
#define __atomic_add_fetch(p, v, o) (sw_point("add " #p), __atomic_add_fetch(p, v, o))
#define __atomic_fetch_sub(p, v, o) (sw_point("sub " #p), __atomic_fetch_sub(p, v, o))

#endif
