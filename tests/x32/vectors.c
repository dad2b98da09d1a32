/*
 * readv, writev, preadv, pwritev, preadv2, pwritev2: rows 515, 516, 534, 535, 546, 547.
 */
#include "transcript.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/uio.h>

static char one[8], two[8], three[8];

static void clear(void) {
    memset(one, '.', 7);
    memset(two, '.', 7);
    memset(three, '.', 7);
}

int main(void) {
    int file = SUCCESS(open("file", O_RDWR | O_CREAT, 0644));
    struct iovec out[] = {{"abc", 3}, {NULL, 0}, {"defgh", 5}, {"ij", 2}};
    RESULT(writev(file, out, 4));
    RESULT(writev(file, out, 0));
    struct iovec in[] = {{one, 2}, {two, 7}, {three, 7}};
    clear();
    RESULT(lseek(file, 0, SEEK_SET));
    RESULT(readv(file, in, 3));
    TEXT(one), TEXT(two), TEXT(three);
    RESULT(readv(file, in, 3));
    off_t far = 5LL << 32;
    RESULT(pwritev(file, out, 4, far));
    RESULT(pwritev(file, out, 1, far + 20));
    clear();
    RESULT(preadv(file, in, 3, far + 1));
    TEXT(one), TEXT(two), TEXT(three);
    RESULT(lseek(file, 0, SEEK_END));
    RESULT(lseek(file, 0, SEEK_CUR) == far + 23);
    RESULT(preadv(file, in, 3, -1));
    RESULT(preadv(file, in, 3, LLONG_MAX));
    RESULT(preadv(file, in, 3, LLONG_MAX - 100));
    RESULT(pwritev2(file, out, 4, far, 0));
    RESULT(preadv2(file, in, 3, far, RWF_HIPRI));
    RESULT(lseek(file, 2, SEEK_SET));
    clear();
    RESULT(preadv2(file, in, 2, -1, 0));
    TEXT(one), TEXT(two);
    RESULT(lseek(file, 0, SEEK_CUR));
    RESULT(pwritev2(file, out, 4, -1, RWF_APPEND));
    RESULT(lseek(file, 0, SEEK_CUR) == far + 33);
    RESULT(preadv2(file, in, 3, 0, 0x40000000));

    say("bad vectors");
    RESULT(readv(file, (struct iovec *)8, 1));
    RESULT(readv(file, (struct iovec *)8, 0));
    RESULT(readv(file, in, -1));
    RESULT(readv(file, in, IOV_MAX + 1));
    static struct iovec many[IOV_MAX + 1];
    static char cells[IOV_MAX];
    for (int i = 0; i < IOV_MAX; i++)
        many[i] = (struct iovec){cells + i, 1};
    RESULT(preadv(file, many, IOV_MAX, 0));
    bytes("cells", cells, 14);
    RESULT(preadv(file, many, IOV_MAX + 1, 0));
    RESULT(pwritev(file, many, IOV_MAX, 4096));
    struct iovec bad[] = {{one, 3}, {(void *)8, 4}, {two, 3}};
    clear();
    RESULT(preadv(file, bad, 3, 0));
    TEXT(one), TEXT(two);
    RESULT(preadv(file, bad + 1, 2, 0));
    RESULT(pwritev(file, bad, 3, 0));
    RESULT(pwritev(file, bad + 1, 1, 0));
    struct iovec huge[] = {{one, 0x80000000u}, {two, 3}};
    RESULT(preadv(file, huge, 2, 0));
    huge[0].iov_len = 0xffffffffu;
    RESULT(preadv(file, huge, 1, 0));
    RESULT(pwritev(file, huge, 1, 0));
    struct iovec sum[] = {{cells, 0x7fffffff}, {cells, 0x7fffffff}};
    RESULT(preadv(file, sum, 2, far + 33 - 4));

    say("at the end of a page");
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    struct iovec *edge = (struct iovec *)(pages + 4096 - sizeof *edge);
    *edge = (struct iovec){one, 4};
    RESULT(preadv(file, edge, 1, 0));
    RESULT(preadv(file, edge, 2, 0));
    struct iovec cut = {pages + 4094, 6};
    RESULT(preadv(file, &cut, 1, 0));
    bytes("the two bytes that fit", pages + 4094, 2);

    say("descriptors");
    RESULT(readv(-1, in, 1));
    RESULT(readv(77, (struct iovec *)8, 5000));
    RESULT(writev(0, out, 1));
    int ends[2];
    RESULT(pipe(ends));
    RESULT(writev(ends[1], out, 4));
    clear();
    RESULT(readv(ends[0], in, 3));
    TEXT(one), TEXT(two);
    RESULT(preadv(ends[0], in, 3, 0));
    close(ends[1]);
    RESULT(readv(ends[0], in, 3));
    return 0;
}
