/* What the probe's files tell each other. */
#ifndef SEEDWALK_LOCAL_H
#define SEEDWALK_LOCAL_H

#include "probe.h"
#include "sys.h"

extern struct sw_header *sw_shared;

void sw_handler(int sig, const struct info *si, const struct frame *uc);
void sw_restorer(void);
int sw_start(const char *socket); /* 0 if the tool has the file now */
int sw_ask_tool(const char *socket, char *instead, int room); /* 1 if there is a library to load instead */
void sw_put_back(struct sw_header *h);
void sw_end(struct sw_header *h);
int sw_socket_from_environment(char *path, int room);

#endif
