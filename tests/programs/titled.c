/* A server that overwrites its environment, as those do that show their state as their title (nginx,
 * redis-server). It is a session of its own, writes the file "begun", and sleeps. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

int main(void) {
    char *first = environ[0], *end = first;
    if (fork() > 0)
        return 0;
    setsid();
    for (char **one = environ; *one; one++)
        end = *one + strlen(*one) + 1;
    memset(first, 0, (size_t)(end - first));
    FILE *begun = fopen("begun", "w");
    if (!begun || fclose(begun) != 0)
        return 1;
    sleep(600);
    return 0;
}
