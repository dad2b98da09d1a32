/*
 * A plugin of QEMU's TCG: counts the instructions that the guest executes, apart by where they lie: below 4
 * GiB (an x32 program), above (the runtime), in the kernel. At a marker, `nopl 0x5744NNNN(%rax)`, it writes
 * all three down. A jump to itself is the runtime's: it holds a thread at a system call that another thread
 * is rewriting (code_writes.c). Where that one loses its CPU, it is executed for the rest of a time slice.
 *
 * Debian ships no qemu-plugin.h; these are the prototypes of version 1 (QEMU 7.2, include/qemu/qemu-plugin.h)
 * that are used. The guest has one processor.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t plugin_id;
struct block;
struct instruction;
struct information {
    const char *target;
    struct {
        int least, current;
    } version;
    bool system_emulation;
};
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*translate)(plugin_id, struct block *));
size_t qemu_plugin_tb_n_insns(const struct block *block);
struct instruction *qemu_plugin_tb_get_insn(const struct block *block, size_t place);
uint64_t qemu_plugin_insn_vaddr(const struct instruction *instruction);
const void *qemu_plugin_insn_data(const struct instruction *instruction);
size_t qemu_plugin_insn_size(const struct instruction *instruction);
void qemu_plugin_register_vcpu_insn_exec_inline(struct instruction *instruction, int operation, void *counter,
                                                uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct instruction *instruction,
                                            void (*executed)(unsigned, void *), int flags, void *data);
int qemu_plugin_install(plugin_id id, const struct information *information, int count, char **words);

int qemu_plugin_version = 1;

static uint64_t program, runtime, kernel;
static FILE *out;

static void marked(unsigned processor, void *number) {
    (void)processor;
    fprintf(out, "mark %lu program %lu runtime %lu kernel %lu\n", (unsigned long)(uintptr_t)number, program,
            runtime, kernel);
    fflush(out);
}

static uint64_t *counter_of(uint64_t at, const unsigned char *bytes, size_t size) {
    if (at >= 0xffff800000000000UL) {
        return &kernel;
    }
    int holds_a_thread = size == 2 && memcmp(bytes, "\xeb\xfe", 2) == 0;
    return at >= 1UL << 32 || holds_a_thread ? &runtime : &program;
}

static void translate(plugin_id id, struct block *block) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct instruction *instruction = qemu_plugin_tb_get_insn(block, i);
        uint64_t at = qemu_plugin_insn_vaddr(instruction);
        const unsigned char *bytes = qemu_plugin_insn_data(instruction);
        size_t size = qemu_plugin_insn_size(instruction);
        qemu_plugin_register_vcpu_insn_exec_inline(instruction, 0, counter_of(at, bytes, size), 1);
        if (size == 7 && memcmp(bytes, "\x0f\x1f\x80", 3) == 0 && bytes[5] == 0x44 && bytes[6] == 0x57) {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, marked, 0, (void *)(uintptr_t)bytes[3]);
        }
    }
}

int qemu_plugin_install(plugin_id id, const struct information *information, int count, char **words) {
    (void)information;
    for (int i = 0; i < count; i++) {
        if (strncmp(words[i], "out=", 4) == 0) {
            out = fopen(words[i] + 4, "w");
        }
    }
    if (out == NULL) {
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    return 0;
}
