/* The probe's sources as they are, with the kernel and its sizes replaced: the calls that leave
 * the process go to the simulated kernel, the tables of thousands of entries have a few. */
#ifndef SEEDWALK_WORLD_H
#define SEEDWALK_WORLD_H

#include "native.h"

#include <stdio.h>
#include <string.h>

#define sys3 real_sys3
#define sys6 real_sys6
#define copy_bytes real_copy_bytes
#ifdef __aarch64__
#include "sys_arm64.h"
#else
#include "sys_amd64.h"
#endif
#undef sys3
#undef sys6
#undef copy_bytes
#define sys3(n, a, b, c) sim_sys6(n, a, b, c, 0, 0, 0)
#define sys6 sim_sys6
#define copy_bytes sim_copy

#include "probe.h"
#define SW_SLOTS 4
#define SW_WAITERS 16
#define SW_REAP 2
#define SW_RING_SIZE 4096
#include "local.h"

#endif
