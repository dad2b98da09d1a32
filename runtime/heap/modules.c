#define _GNU_SOURCE
#include "modules.h"
#include "kernel.h"
#include "log_file.h"
#include "module.h"
#include "own_stack.h"
#include "recorder.h"

#include <dlfcn.h>
#include <link.h>

#define FIRST_RULES 4096

/* A module, as the dynamic linker describes it. */
struct object {
    struct stretch stretch;
    uintptr_t bias;
    const char *name;      /* empty: the program */
    const uint8_t *header; /* .eh_frame_hdr; NULL: it has none */
};

/* glibc from 2.35 on: takes no lock, so that it can be asked in a child whose parent had a thread in the
 * dynamic linker when it forked. */
#if !__GLIBC_PREREQ(2, 35)
struct dl_find_object {
    void *dlfo_map_start, *dlfo_map_end, *dlfo_eh_frame;
    struct link_map *dlfo_link_map;
};
#endif
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

#define OBJECTS 1024

/* Before glibc 2.35. */
struct objects {
    struct object all[OBJECTS];
    uint32_t count;
    uint64_t changes;
    uint32_t process; /* in which they were listed */
};

static struct objects listed;

static int list_object(struct dl_phdr_info *info, size_t size, void *argument) {
    struct objects *objects = argument;
    (void)size;
    if (objects->count == OBJECTS) {
        return 1;
    }
    struct object object = {module_stretch(info), (uintptr_t)info->dlpi_addr, info->dlpi_name, NULL};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
            object.header = (const uint8_t *)(uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        }
    }
    if (object.stretch.size != 0) {
        objects->all[objects->count++] = object;
    }
    return 0;
}

static int find_listed(uintptr_t code, struct object *object) {
    for (uint32_t i = 0; i < listed.count; i++) {
        if (is_within(listed.all[i].stretch, code)) {
            *object = listed.all[i];
            return 1;
        }
    }
    return 0;
}

/* dl_iterate_phdr takes a lock, which a thread of the parent may have held at the fork. A child does not call
 * it, and therefore does not know the modules that were loaded after the fork. */
static int find_by_list(uintptr_t code, struct object *object) {
    static int lock;
    int found = 0;
    if (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) == 0) {
        found = find_listed(code, object);
        if (!found && recorder.process->parent == LOG_NO_PARENT) {
            listed.count = 0;
            dl_iterate_phdr(list_object, &listed);
            found = find_listed(code, object);
        }
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    }
    return found;
}

/* A static program allocates before dl_iterate_phdr works, and to make it work. */
#ifdef WIDTHWISE_HEAP_LINKED
static int is_ready;
__attribute__((constructor)) static void begin(void) { is_ready = 1; }
#else
static const int is_ready = 1;
#endif

static int find_object(uintptr_t code, struct object *object) {
    if (!is_ready || _dl_find_object == NULL) {
        return find_by_list(code, object);
    }
    struct dl_find_object found;
    if (_dl_find_object((void *)code, &found) != 0) {
        return 0;
    }
    uintptr_t low = (uintptr_t)found.dlfo_map_start;
    object->stretch = (struct stretch){low, (uintptr_t)found.dlfo_map_end - low};
    object->bias = (uintptr_t)found.dlfo_link_map->l_addr;
    object->name = found.dlfo_link_map->l_name;
    object->header = found.dlfo_eh_frame;
    return 1;
}

int modules_is_loaded(uintptr_t within) {
    struct dl_find_object found;
    return _dl_find_object != NULL && _dl_find_object((void *)within, &found) == 0;
}

static uint32_t slot_of(const struct stream *stream, uintptr_t code) {
    return (uint32_t)(((uint64_t)code * 0x9e3779b97f4a7c15U) >> 32) & (stream->rule_room - 1);
}

/* The rule of that code address, or the free slot where it would be. */
static struct rule *rule_slot(struct stream *stream, uintptr_t code) {
    uint32_t slot = slot_of(stream, code);
    while (stream->rules[slot].code != 0 && stream->rules[slot].code != code) {
        slot = (slot + 1) & (stream->rule_room - 1);
    }
    return &stream->rules[slot];
}

static void grow_rules(void *argument) {
    struct stream *stream = argument;
    uint32_t old_room = stream->rule_room, room = old_room == 0 ? FIRST_RULES : old_room * 2;
    struct rule *old = stream->rules;
    struct rule *rules = log_file_memory((uint64_t)room * sizeof *rules, &recorder.process->anonymous);
    if (rules == NULL) {
        return;
    }
    stream->rules = rules;
    stream->rule_room = room;
    for (uint32_t i = 0; i < old_room; i++) {
        if (old[i].code != 0) {
            *rule_slot(stream, old[i].code) = old[i];
        }
    }
    if (old != NULL) {
        kernel_unmap(old, (uint64_t)old_room * sizeof *old);
    }
}

/* Half of the table stays free. If it cannot grow, it is cleared. */
static int has_room(struct stream *stream) {
    if (UNLIKELY(stream->rule_count * 2 >= stream->rule_room)) {
        aside_call(grow_rules, stream);
        if (stream->rule_count * 2 >= stream->rule_room) {
            if (stream->rule_room == 0) {
                return 0;
            }
            memset(stream->rules, 0, (size_t)stream->rule_room * sizeof *stream->rules);
            stream->rule_count = 0;
        }
    }
    return 1;
}

static void remember(struct stream *stream, struct rule rule) {
    if (has_room(stream)) {
        *rule_slot(stream, rule.code) = rule;
        stream->rule_count++;
    }
}

static int write_record(struct stream *stream, const struct object *object, const char *name) {
    uint64_t numbers[3] = {object->bias, object->stretch.low, object->stretch.low + object->stretch.size};
    return recorder_write_text(stream, LOG_MODULE, 3, numbers, name);
}

/* The path of the file that is mapped between two addresses; 0: no file is mapped exactly there. The kernel
 * knows it whatever folder the program has changed to since. The link is read, not followed, which takes
 * neither a descriptor nor a privilege (proc_map_files_lookup in fs/proc/base.c). */
static int read_mapped(uintptr_t low, uintptr_t high, char path[PAGE]) {
    static const char digits[] = "0123456789abcdef", folder[] = "/proc/self/map_files/";
    char link[sizeof folder + 4 * sizeof(uintptr_t) + 1];
    memcpy(link, folder, sizeof folder);
    char *at = link + sizeof folder - 1;
    for (int i = 0; i < 2; i++) {
        uintptr_t number = i == 0 ? low : high;
        int shift = number == 0 ? 0 : (int)(8 * sizeof number) - 4;
        while (shift > 0 && number >> shift == 0) {
            shift -= 4;
        }
        for (; shift >= 0; shift -= 4) {
            *at++ = digits[number >> shift & 15];
        }
        *at++ = i == 0 ? '-' : 0;
    }
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PAGE - 1);
    path[length > 0 ? length : 0] = 0;
    return path[0] == '/';
}

struct relative {
    struct stream *stream;
    const struct object *object;
    int is_written;
};

static uintptr_t page_of(uintptr_t address) { return address & ~(uintptr_t)(PAGE - 1); }

/* The dynamic linker keeps a path as the program gave it. One that is relative is replaced by the path of the
 * file that the module's segments are mapped from. They are described in the first page, as linkers do it, or
 * the path stays as it is. */
static void write_relative(void *argument) {
    struct relative *relative = argument;
    const struct object *object = relative->object;
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)page_of(object->stretch.low);
    char path[PAGE];
    int is_known = 0;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_phoff < PAGE &&
        header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) <= PAGE) {
        const ElfW(Phdr) *segments = (const ElfW(Phdr) *)((uintptr_t)header + header->e_phoff);
        for (int i = 0; i < header->e_phnum && !is_known; i++) {
            uintptr_t begins = object->bias + (uintptr_t)segments[i].p_vaddr;
            uintptr_t ends = begins + (uintptr_t)segments[i].p_filesz;
            is_known =
                segments[i].p_type == PT_LOAD && read_mapped(page_of(begins), page_of(ends + PAGE - 1), path);
        }
    }
    relative->is_written = write_record(relative->stream, object, is_known ? path : object->name);
}

/* A module is in the table under the address of its first byte, to which no call returns. */
static void write_module(struct stream *stream, const struct object *object) {
    if (stream->rule_room != 0 && rule_slot(stream, object->stretch.low)->code != 0) {
        return;
    }
    const char *name =
        object->name != NULL && object->name[0] != 0 ? object->name : recorder.process->program;
    struct relative relative = {stream, object, 0};
    if (name == object->name && name[0] != '/') {
        aside_call(write_relative, &relative);
    } else {
        relative.is_written = write_record(stream, object, name);
    }
    if (relative.is_written) {
        remember(stream, (struct rule){.code = object->stretch.low, .kind = RULE_MODULE});
    }
}

static struct rule learn(struct stream *stream, uintptr_t code) {
    struct object object;
    struct rule rule = {.kind = RULE_NONE, .code = code};
    if (find_object(code, &object)) {
        write_module(stream, &object);
        if (object.header != NULL) {
            rule = unwind_rule(object.header, code, &stream->scratch);
        }
    }
    remember(stream, rule);
    return rule;
}

struct rule modules_find_rule(struct stream *stream, uintptr_t code) {
    if (LIKELY(stream->rule_room != 0)) {
        const struct rule *rule = rule_slot(stream, code);
        if (LIKELY(rule->code == code)) {
            return *rule;
        }
    }
    return learn(stream, code);
}

void modules_forget(struct stream *stream) {
    if (stream->rules != NULL) {
        memset(stream->rules, 0, (size_t)stream->rule_room * sizeof *stream->rules);
    }
    memset(stream->near_rules, 0, sizeof stream->near_rules);
    stream->rule_count = 0;
}
