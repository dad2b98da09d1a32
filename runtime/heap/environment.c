/* If a program has emptied its environment, adds the variables that the dynamic linker and the recorder need
 * in the programs that it executes. */
#define _GNU_SOURCE
#include "environment.h"
#include "kernel.h"
#include "log_file.h"
#include "own_stack.h"

#define VARIABLES 3
#define PRELOAD "LD_PRELOAD="

static const char *const names[VARIABLES] = {PRELOAD, "WIDTHWISE_HEAP_LOG=", "WIDTHWISE_HEAP_STACKS="};
static char values[VARIABLES][4096]; /* NAME=VALUE; LD_PRELOAD with the recorder's own entry only */
static int begins_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static const char *find(char *const *environment, const char *name) {
    for (; environment != NULL && *environment != NULL; environment++) {
        if (begins_with(*environment, name)) {
            return *environment;
        }
    }
    return NULL;
}

/* The recorder's entry of LD_PRELOAD: colons and spaces separate entries (ld.so(8)). */
static void keep_entry(const char *list) {
    const char *at = list + strlen(PRELOAD);
    while (*at != 0) {
        size_t length = strcspn(at, ": ");
        const char *library = "libwidthwise-heap.so";
        size_t ending = strlen(library);
        if (length >= ending && memcmp(at + length - ending, library, ending) == 0 &&
            length + strlen(PRELOAD) < sizeof values[0]) {
            memcpy(values[0], PRELOAD, strlen(PRELOAD));
            memcpy(values[0] + strlen(PRELOAD), at, length);
        }
        at += length + (at[length] != 0);
    }
}

void environment_know(void) {
    for (unsigned i = 0; i < VARIABLES; i++) {
        const char *found = find(environ, names[i]);
        if (found != NULL && i == 0) {
            keep_entry(found);
        } else if (found != NULL) {
            strncpy(values[i], found, sizeof values[i] - 1);
        }
    }
}

int environment_is_complete(char *const *environment) {
    for (unsigned i = 0; i < VARIABLES; i++) {
        const char *found = find(environment, names[i]);
        const char *entry = values[i] + strlen(names[i]);
        if (values[i][0] != 0 && (found == NULL || (i == 0 && strstr(found, entry) == NULL))) {
            return 0;
        }
    }
    return 1;
}

struct wanted {
    struct stream *stream;
    uint32_t room;
};

static void make_room(void *argument) {
    struct wanted *wanted = argument;
    struct stream *stream = wanted->stream;
    void *memory = log_file_memory(wanted->room, &recorder.process->anonymous);
    if (memory == NULL) {
        return;
    }
    if (stream->environment != NULL) {
        kernel_unmap(stream->environment, stream->environment_room);
    }
    stream->environment = memory;
    stream->environment_room = wanted->room;
}

/* The environment with the missing variables, in memory of the thread's stream: a child of vfork shares that
 * memory with its parent's thread, which waits. */
char *const *environment_completed(struct stream *stream, char *const *environment) {
    if (environment_is_complete(environment)) {
        return environment;
    }
    size_t count = 0;
    while (environment != NULL && environment[count] != NULL) {
        count++;
    }
    const char *list = find(environment, PRELOAD);
    size_t text = list == NULL ? 0 : strlen(list) + strlen(values[0]) + 2;
    struct wanted wanted = {stream, (uint32_t)((count + VARIABLES + 1) * sizeof(char *) + text)};
    if (wanted.room > stream->environment_room) {
        aside_call(make_room, &wanted);
        if (wanted.room > stream->environment_room) {
            return environment;
        }
    }
    char **made = stream->environment, *joined = (char *)(made + count + VARIABLES + 1);
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (environment[i] == list && values[0][0] != 0 &&
            strstr(list, values[0] + strlen(PRELOAD)) == NULL) {
            strcpy(joined, values[0]);
            strcat(joined, ":");
            strcat(joined, list + strlen(PRELOAD));
            made[length++] = joined;
        } else {
            made[length++] = environment[i];
        }
    }
    for (unsigned i = 0; i < VARIABLES; i++) {
        if (values[i][0] != 0 && find(environment, names[i]) == NULL) {
            made[length++] = values[i];
        }
    }
    made[length] = NULL;
    return made;
}
