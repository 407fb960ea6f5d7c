/* ids.c: the runtime's id of each thread, by the system's number. */
#ifndef SEEDWALK_CLIENT_IDS_H
#define SEEDWALK_CLIENT_IDS_H

#include <stdint.h>

#ifdef _WIN32
#define EXPORT /* the build lists what the DLL exports */
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* sw_id_of returns the ThreadID of the thread with this number, 0 if it is unknown. */
uint64_t sw_id_of(uint64_t os_thread);

#endif
