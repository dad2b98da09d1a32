/*
 * The counting plugin: a shared object that QEMU's TCG loads. It counts the guest's executed instructions.
 *
 * In a whole machine (one processor) user and kernel are counted apart, by the instruction's address: the
 * kernel's half of the address space begins at `split`. Each instruction adds to its counter, so that an
 * exception in the middle of a block counts what was executed.
 *
 * Of a single program (qemu-user) each thread is a processor, and threads run side by side: every processor
 * has a counter of its own, and a block adds its length when it begins. Their sum is exact; a block that a
 * fault leaves in the middle counts as a whole.
 *
 * A marker is the instruction `nopl 0x5744NNNN(%rax)`. It does nothing in any x86 mode. The plugin writes the
 * counters down each time a marker is executed. Markers from 16 on are the measured program's own: they may
 * be executed any number of times, and divide nothing but the plain counts.
 *
 * Options: `out=FILE`, `split=ADDRESS`; `instructions=on` counts executed instructions by their bytes;
 * `l1i=BYTES:WAYS:LINE`, `l1d=…`, `ll=…`, `itlb=ENTRIES:WAYS` and `dtlb=…`, all five, switch on the model of
 * caches of a whole machine (caches.h). These three cost much, and begin at marker 5, so that a boot does not
 * pay for them. The counters of the `mark` lines do not depend on them. The file, line by line:
 *
 *   widthwise-counts 1 TARGET system|user
 *   mark NUMBER user COUNT kernel COUNT
 *   misses NUMBER user L1I L1D LL ITLB DTLB kernel L1I L1D LL ITLB DTLB      of the model, at a mark
 *   executed NUMBER user COUNT kernel COUNT BYTES    between that mark and the one before; 0: until the end
 *   end user COUNT kernel COUNT       the last line: the program (or the machine) has ended
 *   exec user COUNT kernel COUNT      the last line: the program was replaced by another one
 *   running user COUNT kernel COUNT   the last line: the process was killed
 *
 * A process that a program forks writes the file `FILE.PID`, and counts from 0.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caches.h"
#include "instructions.h"
#include "qemu.h"

int qemu_plugin_version = 1;

enum { MOST_PROCESSORS = 4096, MOST_PATH = 4096 };

/* A cache line for each, so that threads do not share one. */
static struct {
    uint64_t user;
    char padding[56];
} processors[MOST_PROCESSORS];
/* Threads beyond the table add here, atomically. */
static uint64_t further_user;

/* Of a whole machine. */
static uint64_t machine_user, machine_kernel;
static bool is_system;
static uint64_t split = 0xffff800000000000u;
static qemu_plugin_id_t own_id;

/* Instructions by their bytes are counted; the model of caches is on; the machine has reached marker 5. */
static bool has_instructions, has_caches, has_begun;

static char path[MOST_PATH];
static char target[32];
static FILE *out;

/* Calls by which a program is replaced (execve, execveat), from each architecture's table in Linux. */
static const struct {
    const char *target;
    int64_t execve, execveat;
} EXEC_CALLS[] = {
    {"x86_64", 59, 322},   {"i386", 11, 358},     {"ppc64", 11, 362}, {"ppc64le", 11, 362},
    {"ppc", 11, 362},      {"aarch64", 221, 281}, {"arm", 11, 387},   {"riscv64", 221, 281},
    {"riscv32", 221, 281}, {"s390x", 11, 354},
};
static int64_t execve_call = -1, execveat_call = -1;

static uint64_t user_count(void) {
    uint64_t sum = machine_user + __atomic_load_n(&further_user, __ATOMIC_RELAXED);
    for (int i = 0; i < MOST_PROCESSORS; i++)
        sum += processors[i].user;
    return sum;
}

static void line(const char *word) {
    if (out == NULL)
        return;
    fprintf(out, "%s user %llu kernel %llu\n", word, (unsigned long long)user_count(),
            (unsigned long long)machine_kernel);
    fflush(out);
}

/* A file is written from its beginning, so that it has the marks and one last line. */
static bool open_out(void) {
    out = fopen(path, "we");
    if (out == NULL)
        return false;
    fprintf(out, "widthwise-counts 1 %s %s\n", target, is_system ? "system" : "user");
    fflush(out);
    return true;
}

/* The guest's first process executes this marker when it begins, and this one before it starts a program;
 * markers from MARK_OWN on are the program's own. */
enum { MARK_BEGIN = 5, MARK_CODE = 6, MARK_OWN = 16 };

static void instrument(qemu_plugin_id_t id);

static void marked(unsigned int processor, void *data) {
    (void)processor;
    unsigned long number = (uintptr_t)data;
    char word[32];
    snprintf(word, sizeof word, "mark %lu", number);
    line(word);
    if (out == NULL || !is_system || number >= MARK_OWN)
        return;
    if (number == MARK_BEGIN && !has_begun && (has_instructions || has_caches)) {
        has_begun = true;
        /* What is translated from here on is translated with all that is to be counted. */
        qemu_plugin_reset(own_id, instrument);
    }
    if (has_caches)
        misses_write(out, number);
    if (has_instructions) {
        /* A program's beginning has an odd number, its end the next one. */
        if (number % 2 == 0)
            instructions_write(out, number);
        instructions_begin();
    }
}

static void block_executed(unsigned int processor, void *count) {
    if (processor < MOST_PROCESSORS)
        processors[processor].user += (uintptr_t)count;
    else
        __atomic_fetch_add(&further_user, (uintptr_t)count, __ATOMIC_RELAXED);
}

/* A block of a single program's instructions, whose threads run side by side. */
static void listed_block_executed(unsigned int processor, void *block) {
    (void)processor;
    __atomic_fetch_add(&((struct listed_block *)block)->executed, 1, __ATOMIC_RELAXED);
}

/* A count that is not complete is no count. */
__attribute__((noreturn)) static void no_memory(void) {
    fprintf(stderr, "widthwise: the plugin has no memory\n");
    _exit(1);
}

static bool is_marker(const struct qemu_plugin_insn *instruction, unsigned int *number) {
    if (qemu_plugin_insn_size(instruction) != 7)
        return false;
    const unsigned char *bytes = qemu_plugin_insn_data(instruction);
    if (memcmp(bytes, "\x0f\x1f\x80", 3) != 0 || bytes[5] != 0x44 || bytes[6] != 0x57)
        return false;
    *number = bytes[3] | (unsigned int)bytes[4] << 8;
    return true;
}

static struct entry *entry_of(struct qemu_plugin_insn *instruction) {
    struct entry *entry =
        instruction_entry(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction));
    if (entry == NULL)
        no_memory();
    return entry;
}

static void count_by_bytes(struct qemu_plugin_insn *instruction) {
    struct entry *entry = entry_of(instruction);
    bool is_kernel = qemu_plugin_insn_vaddr(instruction) >= split;
    qemu_plugin_register_vcpu_insn_exec_inline(instruction, QEMU_PLUGIN_INLINE_ADD_U64,
                                               is_kernel ? &entry->kernel : &entry->user, 1);
}

/* The instruction's own bytes where a new line of the block begins, and its accesses to memory. */
static void model_accesses(struct qemu_plugin_insn *instruction, bool is_first) {
    bool is_kernel = qemu_plugin_insn_vaddr(instruction) >= split;
    uint64_t address = qemu_plugin_insn_vaddr(instruction), size = qemu_plugin_insn_size(instruction);
    bool begins_line = is_first || address % caches_line_size() == 0;
    bool crosses = (address + size - 1) / caches_line_size() != address / caches_line_size();
    if (begins_line || crosses) {
        struct fetch *fetch = malloc(sizeof *fetch);
        if (fetch == NULL)
            no_memory();
        *fetch = (struct fetch){.virtual = address,
                                .host = (uintptr_t)qemu_plugin_insn_haddr(instruction),
                                .is_kernel = is_kernel,
                                .has_first = begins_line,
                                .has_next = crosses};
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, caches_fetch, QEMU_PLUGIN_CB_NO_REGS, fetch);
    }
    qemu_plugin_register_vcpu_mem_cb(instruction, caches_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                     (void *)(uintptr_t)is_kernel);
}

static struct listed_block *listed_of(size_t count) {
    struct listed_block *block = list_block(count);
    if (block == NULL)
        no_memory();
    return block;
}

/* Whether QEMU may have given the last instruction up: one that reaches into the next page becomes the next
 * block's first, and this block still has the bytes of it that were read. */
static bool may_be_cut(const struct qemu_plugin_tb *block, size_t count) {
    if (count < 2)
        return false;
    const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(block, count - 1);
    uint64_t page = (uint64_t)1 << USER_PAGE_BITS;
    return qemu_plugin_insn_vaddr(last) % page > page - MOST_INSTRUCTION;
}

/* An instruction of a single program that is not counted with its block. */
static void count_alone(struct qemu_plugin_insn *instruction) {
    qemu_plugin_register_vcpu_insn_exec_cb(instruction, block_executed, QEMU_PLUGIN_CB_NO_REGS,
                                           (void *)(uintptr_t)1);
    if (!has_instructions)
        return;
    struct listed_block *listed = listed_of(1);
    listed->entries[0] = entry_of(instruction);
    qemu_plugin_register_vcpu_insn_exec_cb(instruction, listed_block_executed, QEMU_PLUGIN_CB_NO_REGS,
                                           listed);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block);
    struct listed_block *listed = NULL;
    if (!is_system) {
        size_t certain = count - may_be_cut(block, count);
        qemu_plugin_register_vcpu_tb_exec_cb(block, block_executed, QEMU_PLUGIN_CB_NO_REGS,
                                             (void *)(uintptr_t)certain);
        if (has_instructions) {
            listed = listed_of(certain);
            qemu_plugin_register_vcpu_tb_exec_cb(block, listed_block_executed, QEMU_PLUGIN_CB_NO_REGS,
                                                 listed);
        }
        if (certain < count)
            count_alone(qemu_plugin_tb_get_insn(block, certain));
    }
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        unsigned int number;
        if (is_system) {
            uint64_t *counter =
                qemu_plugin_insn_vaddr(instruction) >= split ? &machine_kernel : &machine_user;
            qemu_plugin_register_vcpu_insn_exec_inline(instruction, QEMU_PLUGIN_INLINE_ADD_U64, counter, 1);
        }
        if (listed != NULL && i < listed->count)
            listed->entries[i] = entry_of(instruction);
        else if (is_system && has_instructions && has_begun)
            count_by_bytes(instruction);
        if (has_caches && has_begun)
            model_accesses(instruction, i == 0);
        if (is_marker(instruction, &number)) {
            if (number == MARK_CODE)
                caches_code_at(qemu_plugin_insn_vaddr(instruction), qemu_plugin_insn_haddr(instruction));
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, marked, QEMU_PLUGIN_CB_NO_REGS,
                                                   (void *)(uintptr_t)number);
        }
    }
}

/* If the call succeeds, this process ends here for the plugin; if it fails, `ended` writes a later line. */
static void called(qemu_plugin_id_t id, unsigned int processor, int64_t call, uint64_t a, uint64_t b,
                   uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)processor, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (call == execve_call || call == execveat_call)
        line("exec");
}

static void ended(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    if (has_instructions && !is_system && out != NULL) {
        add_listed_blocks();
        instructions_write(out, 0);
    }
    line("end");
    if (out != NULL)
        fclose(out);
    out = NULL;
}

/* What was executed before the fork is the parent's. */
static void forked(void) {
    memset(processors, 0, sizeof processors);
    further_user = 0;
    forget_listed_blocks();
    if (out != NULL)
        fclose(out);
    size_t length = strlen(path);
    snprintf(path + length, sizeof path - length, ".%ld", (long)getpid());
    if (open_out())
        line("running");
}

static void instrument(qemu_plugin_id_t id) {
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
}

static bool is_on(const char *option, const char *name, const char **value) {
    size_t length = strlen(name);
    *value = option + length;
    return strncmp(option, name, length) == 0;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **options) {
    is_system = info->system_emulation;
    snprintf(target, sizeof target, "%s", info->target_name);
    if (is_system && info->system.smp_vcpus != 1) {
        fprintf(stderr, "widthwise: the plugin counts a machine of one processor (-smp 1)\n");
        return 1;
    }
    own_id = id;
    for (int i = 0; i < count; i++) {
        const char *value;
        if (is_on(options[i], "out=", &value) && strlen(value) < sizeof path - 32)
            snprintf(path, sizeof path, "%s", value);
        else if (is_on(options[i], "split=", &value))
            split = strtoull(value, NULL, 0);
        else if (strcmp(options[i], "instructions=on") == 0)
            has_instructions = true;
        else if (is_system && caches_option(options[i]))
            has_caches = true;
        else {
            fprintf(stderr, "widthwise: the plugin does not know the option %s\n", options[i]);
            return 1;
        }
    }
    model.split = split;
    if (has_caches && !caches_complete()) {
        fprintf(stderr, "widthwise: the plugin's model needs l1i, l1d, ll, itlb and dtlb\n");
        return 1;
    }
    if (!open_out()) {
        fprintf(stderr, "widthwise: the plugin's file %s: %s\n", path, strerror(errno));
        return 1;
    }
    instrument(id);
    if (!is_system) {
        for (size_t i = 0; i < sizeof EXEC_CALLS / sizeof *EXEC_CALLS; i++) {
            if (strcmp(target, EXEC_CALLS[i].target) == 0) {
                execve_call = EXEC_CALLS[i].execve;
                execveat_call = EXEC_CALLS[i].execveat;
            }
        }
        pthread_atfork(NULL, NULL, forked);
        qemu_plugin_register_vcpu_syscall_cb(id, called);
        line("running");
    }
    return 0;
}
