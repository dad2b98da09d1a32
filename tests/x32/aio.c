/*
 * io_setup, io_submit, io_getevents, io_cancel, io_destroy: rows 543, 544 and the plain ones.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>

static long setup(unsigned count, aio_context_t *context) { return syscall(SYS_io_setup, count, context); }
static long submit(aio_context_t context, int count, struct iocb **list) {
    return syscall(SYS_io_submit, (unsigned long)context, count, list);
}
static long events(unsigned long context, int least, int most, struct io_event *list,
                   struct timespec *limit) {
    return syscall(SYS_io_getevents, context, least, most, list, limit);
}

int main(void) {
    unsigned long cells[2] = {0, 0x5a5a5a5a};
    VALUE(sizeof(struct iocb));
    VALUE(sizeof(struct io_event));
    RESULT(syscall(SYS_io_setup, 8, cells));
    HEX(cells[1]);
    IS(cells[0] != 0);
    RESULT(syscall(SYS_io_setup, 8, cells));
    aio_context_t zero = 0;
    RESULT(setup(0, &zero));
    RESULT(setup(8, (aio_context_t *)8));
    unsigned long context = cells[0];
    int file = open("file", O_RDWR | O_CREAT, 0600), wakes = eventfd(0, 0);
    static char out[64] = "written by aio", in[64];
    struct iocb one = {.aio_data = 0x1122334455667788,
                       .aio_lio_opcode = IOCB_CMD_PWRITE,
                       .aio_fildes = file,
                       .aio_buf = (uintptr_t)out,
                       .aio_nbytes = 14,
                       .aio_offset = 5LL << 32};
    struct iocb two = {.aio_data = 2,
                       .aio_lio_opcode = IOCB_CMD_PREAD,
                       .aio_fildes = file,
                       .aio_buf = (uintptr_t)in,
                       .aio_nbytes = 20,
                       .aio_offset = 5LL << 32,
                       .aio_flags = IOCB_FLAG_RESFD,
                       .aio_resfd = wakes};
    struct iocb *list[] = {&one, &two, NULL};
    struct io_event got[8];
    RESULT(submit(context, 1, list));
    RESULT(events(context, 1, 8, got, NULL));
    say("data %llx res %lld res2 %lld", (long long)got[0].data, (long long)got[0].res,
        (long long)got[0].res2);
    IS(got[0].obj == (uintptr_t)&one);
    RESULT(submit(context, 1, list + 1));
    RESULT(events(context, 1, 8, got, NULL));
    say("data %llx res %lld", (long long)got[0].data, (long long)got[0].res);
    TEXT(in);
    uint64_t value = 0;
    read(wakes, &value, sizeof value);
    VALUE(value);
    struct timespec none = {0};
    RESULT(events(context, 1, 8, got, &none));
    RESULT(events(context, 9, 8, got, &none));
    RESULT(submit(context, 0, list));
    RESULT(submit(context, -1, list));
    RESULT(submit(context, 1, (struct iocb **)8));
    RESULT(submit(context, 3, list));
    RESULT(events(context, 2, 8, got, NULL));
    struct iocb bad = {.aio_lio_opcode = 99, .aio_fildes = file};
    list[0] = &bad;
    RESULT(submit(context, 1, list));
    bad.aio_lio_opcode = IOCB_CMD_PREAD, bad.aio_fildes = 250;
    RESULT(submit(context, 1, list));
    list[0] = (struct iocb *)8;
    RESULT(submit(context, 1, list));

    say("vectors");
    struct iovec parts[] = {{in, 7}, {in + 16, 20}};
    memset(in, 0, sizeof in);
    struct iocb vector = {.aio_lio_opcode = IOCB_CMD_PREADV,
                          .aio_fildes = file,
                          .aio_buf = (uintptr_t)parts,
                          .aio_nbytes = 2,
                          .aio_offset = 5LL << 32};
    list[0] = &vector;
    RESULT(submit(context, 1, list));
    RESULT(events(context, 1, 8, got, NULL));
    VALUE(got[0].res);
    TEXT(in), TEXT(in + 16);
    struct iovec from[] = {{"AB", 2}, {"CDE", 3}};
    vector.aio_lio_opcode = IOCB_CMD_PWRITEV, vector.aio_buf = (uintptr_t)from;
    RESULT(submit(context, 1, list));
    RESULT(events(context, 1, 8, got, NULL));
    VALUE(got[0].res);
    RESULT(pread(file, in, 20, 5LL << 32));
    TEXT(in);
    RESULT(syscall(SYS_io_cancel, context, &one, got));
    RESULT(syscall(SYS_io_destroy, context));
    RESULT(syscall(SYS_io_destroy, context));
    RESULT(submit(context, 1, list));
    return 0;
}
