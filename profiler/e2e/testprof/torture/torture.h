/* What the Go half of the test's build asks of torture_windows.c. */
#ifndef SEEDWALK_TORTURE_H
#define SEEDWALK_TORTURE_H

/* Around what Go does wrong in the window; nonzero: that is wanted. */
int sw_torture_go_begin(void);
void sw_torture_go_end(void);

#endif
