/* A plugin of QEMU that counts the instructions a program runs, and prints them
 * at its end. Debian has no header of the interface: what of it is used is
 * declared here, as QEMU's documentation of version 1 has it. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*translated)(plugin_id, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int op, void *counter, uint64_t by);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*ended)(plugin_id, void *), void *arg);
void qemu_plugin_outs(const char *text);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static const int add = 0; /* QEMU_PLUGIN_INLINE_ADD_U64 */
static uint64_t count;

static void translated(plugin_id id, struct qemu_plugin_tb *block)
{
	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline(block, add, &count, qemu_plugin_tb_n_insns(block));
}

static void ended(plugin_id id, void *arg)
{
	char line[64];

	(void)id;
	(void)arg;
	snprintf(line, sizeof line, "%" PRIu64 "\n", count);
	qemu_plugin_outs(line);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	(void)info;
	(void)argc;
	(void)argv;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
