/*
 * What the recorder knows of the process and of each thread.
 *
 * The rules of all its code: it runs inside malloc, in signal handlers, on stacks of a few kilobytes, in
 * children of fork, before and after main. It never allocates, takes no lock that another thread could hold
 * across a fork, needs less than 2 KiB of the caller's stack, and preserves errno.
 */
#ifndef WIDTHWISE_HEAP_STATE_H
#define WIDTHWISE_HEAP_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "log.h"
#include "unwind_rules.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define SLOTS 256
#define DEEPEST 2048
#define READABLE_PAGES 64
#define NEAR_RULES 512
#define OWN_STACK 32768
/* A reading of the clock costs as much as a small allocation. Where events follow each other closely, the
 * clock is read once in several events; elsewhere it is read at each. */
#define MOST_EVENTS_PER_READING 256
#define CLOSELY 1000U /* ns from one to the next */

struct block {
    uint32_t node;
    uint32_t attributes;
    uint64_t requested;
    uint64_t spare;
};

struct frame {
    uintptr_t code;  /* the code address that the call returns to */
    uintptr_t stack; /* the stack pointer there */
    uintptr_t frame; /* the frame pointer there */
    uint32_t node;
};

/* A stack: nodes lie in memory by their numbers, so that those of one stack, which were made one after the
 * other, lie side by side. */
struct node {
    uintptr_t code;
    uint32_t parent;   /* its number */
    uint32_t sibling;  /* the next child of its parent */
    uint32_t child;    /* the first of its own */
    uint32_t children; /* how many it has */
};

/* What one thread writes to at a time. */
struct stream {
    uint8_t *at;
    uint8_t *end; /* of what may be written before another chunk is needed */
    struct log_chunk *buffer;
    uintptr_t entered; /* about where the stack was when the last event began */
    uint64_t number;   /* of its last event */
    uint64_t address;
    uint64_t time; /* ns: the last TIME */
    uint32_t until_reading, events_per_reading;
    uint32_t epoch;   /* in which its stacks, slots and modules were written; 0: they have to be forgotten */
    uint32_t process; /* the chunk of the process that it belongs to */
    uint32_t index, name;
    uint32_t has_failed; /* 1: no chunk is to be had; `loss` says why */
    enum log_loss loss;
    struct block slots[SLOTS];

    /* A signal's handler that interrupts a record writes to another stream. */
    struct stream *outer; /* the one whose record was interrupted */
    struct stream *inner; /* the one for the next interruption */

    /* The stack that was walked last, the outermost call first. */
    uint32_t depth;
    uint32_t unmappings; /* as of that walk: memory that was unmapped since cannot be read any more */
    struct frame frames[DEEPEST];
    struct frame walked[DEEPEST]; /* of the walk in progress, the innermost call first */
    uintptr_t readable[READABLE_PAGES];
    struct rule near_rules[NEAR_RULES]; /* those used last, which stay in the processor's nearest cache */
    uint32_t rule_count, rule_room;
    struct rule
        *rules; /* a table by code address; the first addresses of modules that were written are in it, too */
    struct unwind_scratch scratch;
    uintptr_t node_code;
    uint32_t node_count, node_room; /* number 0 is the empty stack */
    struct node *nodes;
    struct node broken;   /* what could not be followed further */
    uint32_t *node_index; /* the children of those that have many, by a hash; twice as many as there is room
                             for nodes */

    uint32_t environment_room;
    char **environment; /* of a program that is executed */

    struct stream *next; /* of those that no thread has */
    uint8_t own_stack[OWN_STACK] __attribute__((aligned(16)));
};

/* In a page that the kernel clears in a child of fork: 0 means that this process has no log of its own yet.
 */
struct epoch {
    uint32_t number; /* changes also when a module is closed */
};

enum inside {
    OUTSIDE,
    RECORDING, /* a signal handler that allocates now writes to another stream */
    SILENT     /* what is allocated now is the recorder's own; signals are held */
};

struct thread {
    struct stream *stream;
    uint32_t inside;
    uint32_t leaving; /* 1: its keys were destroyed, so it has a stream during an event only */
};

struct recorder {
    struct epoch *epoch;
    uint64_t number; /* of the next event */
    struct log_process *process;
    const char *single_threaded; /* __libc_single_threaded */
    int stacks;
    uint32_t process_chunk;
    uint32_t unmappings; /* their number: a walk reads no memory that was unmapped since */
};

extern struct recorder recorder;
extern __thread struct thread recorder_thread __attribute__((tls_model("initial-exec")));

/* Facts of the allocator, which are known before there is a log. */
struct allocator_facts {
    char file[sizeof((struct log_process *)NULL)->allocator];
    uint32_t state; /* LOG_GLIBC, LOG_OWN_MALLOC */
};

extern struct allocator_facts state_allocator;

/* The file of the allocator's functions has been found. */
void state_know_allocator(const char *file, int glibc, int replaced);
/* Memory was unmapped, perhaps a coroutine's stack: cached readable pages are not valid any more. */
static inline void state_unmaps(void) { __atomic_fetch_add(&recorder.unmappings, 1, __ATOMIC_RELAXED); }

#endif
