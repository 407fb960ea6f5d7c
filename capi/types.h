/* seedwalk.h for cgo: const pointers under names that Go can spell, so that
 * the prototypes cgo writes are the header's. */
#ifndef SEEDWALK_CGO_TYPES_H
#define SEEDWALK_CGO_TYPES_H
#include "seedwalk.h"
typedef const char cchar;
typedef const uint8_t cbyte;
typedef const void *cpointer;
typedef const seedwalk_registers cregisters;
typedef const seedwalk_stack cstack;
typedef const seedwalk_snapshot_frame csnapshot;
#endif
