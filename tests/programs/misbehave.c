/* A program for every way to end badly (argument 1). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "exit"))
        return argc > 2 ? atoi(argv[2]) : 1;
    if (!strcmp(how, "crash"))
        raise(SIGSEGV);
    if (!strcmp(how, "hang"))
        for (;;)
            pause();
    if (!strcmp(how, "flood"))
        for (;;)
            puts("more and more and more and more and more and more and more and more and more");
    if (!strcmp(how, "complain")) /* so many lines, or without end */
        for (long line = 0; argc < 3 || line < atol(argv[2]); line++)
            fputs("more and more and more and more and more and more and more and more and more\n", stderr);
    if (!strcmp(how, "close"))
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
    if (!strcmp(how, "bomb"))
        for (;;)
            if (fork() < 0)
                usleep(1000);
    if (!strcmp(how, "width")) /* answers differently in each data model */
        printf("long has %zu bytes\n", sizeof(long));
    if (!strcmp(how, "random"))
        printf("%d\n", (int)getpid());
    return 0;
}
