/* Walks the stack of a call, and numbers what it finds. */
#define _GNU_SOURCE
#include "stack.h"
#include "kernel.h"
#include "log_file.h"
#include "modules.h"
#include "own_stack.h"
#include "recorder.h"

#define FIRST_NODES 1024
/* A search visits this many children of a stack before it uses the index. */
#define NEAR 8

/* Whether memory can be read, without a descriptor and also in a sandbox: rt_sigprocmask copies the mask
 * before it checks its first argument (kernel/signal.c). */
__attribute__((noinline)) static int can_be_read(uintptr_t address) {
    int error = errno;
    long result = syscall(SYS_rt_sigprocmask, ~0L, (void *)(address & ~(uintptr_t)7), NULL, 8);
    int fault = result == -1 && errno == EFAULT;
    errno = error;
    return !fault;
}

__attribute__((noinline)) static int learn_readable(struct stream *stream, uintptr_t address) {
    int is = can_be_read(address);
    if (is) {
        stream->readable[address / PAGE % READABLE_PAGES] = address / PAGE;
    }
    return is;
}

static inline int is_readable(struct stream *stream, uintptr_t address) {
    uintptr_t page = address / PAGE;
    return LIKELY(stream->readable[page % READABLE_PAGES] == page) || learn_readable(stream, address);
}

static uint32_t slot_of(const struct stream *stream, uintptr_t code, uint32_t parent) {
    uint64_t mixed = ((uint64_t)code * 0x9e3779b97f4a7c15U) ^ ((uint64_t)parent * 0xff51afd7ed558ccdU);
    return (uint32_t)(mixed ^ mixed >> 29) & (stream->node_room * 2 - 1);
}

static struct node *node_at(struct stream *stream, uint32_t number) {
    return number == LOG_BROKEN ? &stream->broken : &stream->nodes[number];
}

static void put_in_index(struct stream *stream, uint32_t number) {
    const struct node *node = &stream->nodes[number];
    uint32_t slot = slot_of(stream, node->code, node->parent);
    while (stream->node_index[slot] != 0) {
        slot = (slot + 1) & (stream->node_room * 2 - 1);
    }
    stream->node_index[slot] = number;
}

static void grow_nodes(void *argument) {
    struct stream *stream = argument;
    uint32_t old_room = stream->node_room, room = old_room == 0 ? FIRST_NODES : old_room * 2;
    uint64_t *anonymous = &recorder.process->anonymous;
    struct node *nodes = log_file_memory((uint64_t)room * sizeof *nodes, anonymous);
    uint32_t *index = log_file_memory((uint64_t)room * 2 * sizeof *index, anonymous);
    if (nodes == NULL || index == NULL) {
        if (nodes != NULL) {
            kernel_unmap(nodes, (uint64_t)room * sizeof *nodes);
        }
        return;
    }
    if (old_room != 0) {
        memcpy(nodes, stream->nodes, (size_t)old_room * sizeof *nodes);
        kernel_unmap(stream->nodes, (uint64_t)old_room * sizeof *nodes);
        kernel_unmap(stream->node_index, (uint64_t)old_room * 2 * sizeof *index);
    }
    stream->nodes = nodes;
    stream->node_index = index;
    stream->node_room = room;
    for (uint32_t number = 1; number <= stream->node_count; number++) {
        if (node_at(stream, nodes[number].parent)->children > NEAR) {
            put_in_index(stream, number);
        }
    }
}

static uint32_t find_in_index(const struct stream *stream, uintptr_t code, uint32_t parent) {
    uint32_t slot = slot_of(stream, code, parent), number;
    while ((number = stream->node_index[slot]) != 0) {
        if (stream->nodes[number].code == code && stream->nodes[number].parent == parent) {
            break;
        }
        slot = (slot + 1) & (stream->node_room * 2 - 1);
    }
    return number;
}

/* Children that are found often move to the front of the list; behind the first few the index is used. 0:
 * there is no such child. */
static uint32_t find_child(struct stream *stream, struct node *outer, uintptr_t code, uint32_t parent) {
    struct node *nodes = stream->nodes, *before = NULL;
    uint32_t number = outer->child;
    for (unsigned looked = 0; number != 0; looked++) {
        struct node *node = &nodes[number];
        if (node->code == code) {
            if (before != NULL) {
                before->sibling = node->sibling;
                node->sibling = outer->child;
                outer->child = number;
            }
            return number;
        }
        if (looked == NEAR - 1 && outer->children > NEAR) {
            return find_in_index(stream, code, parent);
        }
        before = node;
        number = node->sibling;
    }
    return 0;
}

static uint32_t make_node(struct stream *stream, struct node *outer, uintptr_t code, uint32_t parent) {
    uint64_t numbers[2] = {parent, zigzag((int64_t)((uint64_t)code - (uint64_t)stream->node_code))};
    if (!recorder_write(stream, LOG_NODE, 2, numbers)) {
        return LOG_BROKEN;
    }
    uint32_t number = ++stream->node_count;
    stream->nodes[number] = (struct node){code, parent, outer->child, 0, 0};
    stream->node_code = code;
    outer->child = number;
    outer->children++;
    if (outer->children == NEAR + 1) {
        for (uint32_t child = number; child != 0; child = stream->nodes[child].sibling) {
            put_in_index(stream, child);
        }
    } else if (outer->children > NEAR) {
        put_in_index(stream, number);
    }
    return number;
}

static uint32_t node_of(struct stream *stream, uintptr_t code, uint32_t parent) {
    if (UNLIKELY(stream->node_count + 1 >= stream->node_room)) {
        aside_call(grow_nodes, stream);
        if (stream->node_count + 1 >= stream->node_room) {
            __atomic_fetch_add(&recorder.process->broken, 1, __ATOMIC_RELAXED);
            return LOG_BROKEN;
        }
    }
    struct node *outer = node_at(stream, parent);
    if (LIKELY(stream->nodes[outer->child].code == code)) {
        return outer->child;
    }
    uint32_t number = find_child(stream, outer, code, parent);
    return number != 0 ? number : make_node(stream, outer, code, parent);
}

void stack_forget(struct stream *stream) {
    if (stream->node_room != 0) {
        memset(stream->nodes, 0, ((size_t)stream->node_count + 1) * sizeof *stream->nodes);
        memset(stream->node_index, 0, (size_t)stream->node_room * 2 * sizeof *stream->node_index);
    }
    stream->broken = (struct node){0};
    stream->depth = 0;
    stream->node_count = 0;
    stream->node_code = 0;
}

/* Whether the stack outside of a frame is as it was at the last walk. */
static int is_as_it_was(const struct stream *stream, uint32_t depth) {
    for (uint32_t i = 0; i + 1 < depth; i++) {
        const struct frame *frame = &stream->frames[i];
        if ((uintptr_t)((const stack_word *)frame->stack)[-1] != frame->code) {
            return 0;
        }
    }
    return 1;
}

/* Memory was unmapped since the last walk, perhaps a coroutine's stack. */
static void begin_walk(struct stream *stream) {
    uint32_t unmappings = __atomic_load_n(&recorder.unmappings, __ATOMIC_RELAXED);
    if (UNLIKELY(stream->unmappings != unmappings)) {
        stream->unmappings = unmappings;
        stream->depth = 0;
        memset(stream->readable, 0, sizeof stream->readable);
    }
}

enum step { STEP_CALLER, STEP_INTERRUPTED, STEP_OUTERMOST, STEP_LOST };

/* From the frame of a signal handler to the interrupted one. */
static enum step step_to_interrupted(struct stream *stream, struct frame *at, struct rule rule) {
    uintptr_t stack = at->stack;
    if (!is_readable(stream, stack + (uintptr_t)rule.cfa) ||
        !is_readable(stream, stack + (uintptr_t)rule.address) ||
        !is_readable(stream, stack + (uintptr_t)rule.frame)) {
        return STEP_LOST;
    }
    at->code = (uintptr_t) * (const stack_word *)(stack + (uintptr_t)rule.address);
    at->frame = (uintptr_t) * (const stack_word *)(stack + (uintptr_t)rule.frame);
    /* The handler may run on another stack, above or below the interrupted one. */
    at->stack = (uintptr_t) * (const stack_word *)(stack + (uintptr_t)rule.cfa);
    return STEP_INTERRUPTED;
}

/* From a frame to the one around it. An interrupted instruction is not a call's return address. */
static enum step step(struct stream *stream, struct frame *at, int interrupted) {
    /* A call may be the last instruction of its function, so its rule is looked up one byte before the return
     * address; an interrupted instruction is looked up at its own address. */
    struct rule rule = modules_rule(stream, at->code - !interrupted);
    uintptr_t stack = at->stack, frame = at->frame, outer = 0;
    if (LIKELY(rule.kind == RULE_STACK)) {
        outer = stack + (uintptr_t)rule.cfa;
    } else if (rule.kind == RULE_FRAME) {
        outer = frame + (uintptr_t)rule.cfa;
    } else if (rule.kind == RULE_STORED) {
        if (is_readable(stream, frame + (uintptr_t)rule.cfa)) {
            outer = (uintptr_t) * (const stack_word *)(frame + (uintptr_t)rule.cfa);
        }
    } else if (rule.kind == RULE_SIGNAL) {
        return step_to_interrupted(stream, at, rule);
    } else {
        return rule.kind == RULE_END ? STEP_OUTERMOST : STEP_LOST;
    }
    if (outer <= stack || !is_readable(stream, outer - sizeof(stack_word))) {
        return STEP_LOST;
    }
    at->code = (uintptr_t)((const stack_word *)outer)[-1];
    if (rule.frame != SAME_FRAME) {
        uintptr_t saved = rule.frame == FRAME_AT_ITSELF ? frame : outer + (uintptr_t)(intptr_t)rule.frame;
        if (!is_readable(stream, saved)) {
            return STEP_LOST;
        }
        at->frame = (uintptr_t) * (const stack_word *)saved;
    }
    at->stack = outer;
    return at->code == 0 ? STEP_OUTERMOST : STEP_CALLER;
}

/* Field by field: wide loads would wait for the narrow stores that precede them (store forwarding). */
static inline void put_frame(struct frame *to, const struct frame *from, uint32_t node) {
    *(volatile uintptr_t *)&to->code = from->code;
    *(volatile uintptr_t *)&to->stack = from->stack;
    *(volatile uintptr_t *)&to->frame = from->frame;
    to->node = node;
}

uint32_t stack_number(struct stream *stream, uintptr_t code, uintptr_t stack, uintptr_t frame) {
    begin_walk(stream);
    struct frame at = {code, stack, frame, 0};
    uint32_t count = 0, depth = stream->depth, parent = 0;
    int interrupted = 0, has_signal = 0;
    for (;;) {
        while (depth > 0 && stream->frames[depth - 1].stack < at.stack) {
            depth--;
        }
        if (depth > 0 && stream->frames[depth - 1].stack == at.stack &&
            stream->frames[depth - 1].code == at.code && stream->frames[depth - 1].frame == at.frame &&
            is_as_it_was(stream, depth)) {
            parent = stream->frames[depth - 1].node;
            break;
        }
        if (count == DEEPEST || count + depth >= DEEPEST) {
            depth = 0;
            parent = LOG_BROKEN;
            break;
        }
        put_frame(&stream->walked[count++], &at, 0);
        enum step next = step(stream, &at, interrupted);
        interrupted = next == STEP_INTERRUPTED;
        if (interrupted) {
            has_signal = 1;
            depth = 0;
        } else if (next != STEP_CALLER) {
            depth = 0;
            if (next == STEP_LOST) {
                __atomic_fetch_add(&recorder.process->broken, 1, __ATOMIC_RELAXED);
                parent = LOG_BROKEN;
            }
            break;
        }
    }
    while (count > 0) {
        count--;
        parent = node_of(stream, stream->walked[count].code, parent);
        put_frame(&stream->frames[depth++], &stream->walked[count], parent);
    }
    /* A handler may run on another stack than the interrupted one, which may not exist at the next walk. */
    stream->depth = has_signal ? 0 : depth;
    return parent;
}
