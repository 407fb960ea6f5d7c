/* An addon for node that starts a managed program when it is loaded:
 *
 *     SWHOST_RUNTIME=DIR SWHOST_APP=APP SWHOST_ARG=ARG node -e 'require("./nodehost.node")'
 *
 * Source: Node.js, doc/api/n-api.md. */
#define main swhost
#include "host.c"
#undef main

void *napi_register_module_v1(void *env, void *exports);

void *napi_register_module_v1(void *env, void *exports)
{
	char *argv[] = {"node", getenv("SWHOST_RUNTIME"), getenv("SWHOST_APP"), getenv("SWHOST_ARG"), NULL};
	(void)env;
	swhost(4, argv);
	return exports;
}
