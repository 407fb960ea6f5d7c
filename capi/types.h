/* seedwalk.h for cgo: const pointers under names that Go can spell, so that
 * the prototypes cgo writes are the header's. */
#ifndef SEEDWALK_CGO_TYPES_H
#define SEEDWALK_CGO_TYPES_H
#include <stddef.h>

#include "seedwalk.h"
typedef const char cchar;
typedef const uint8_t cbyte;
typedef const void *cpointer;
typedef const seedwalk_options coptions;
typedef const seedwalk_walk_request cwalk;
typedef const seedwalk_merge_request cmerge;
typedef const seedwalk_batch cbatch;
#endif
