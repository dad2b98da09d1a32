#include "state.h"

struct recorder recorder;
__thread struct thread recorder_thread __attribute__((tls_model("initial-exec")));
struct allocator_facts state_allocator;

void state_know_allocator(const char *file, int glibc, int replaced) {
    strncpy(state_allocator.file, file, sizeof state_allocator.file - 1);
    state_allocator.state |= (glibc ? LOG_GLIBC : 0) | (replaced ? LOG_OWN_MALLOC : 0);
    if (recorder.process != NULL) {
        memcpy(recorder.process->allocator, state_allocator.file, sizeof state_allocator.file);
        recorder.process->state |= state_allocator.state;
    }
}
