/* other_fork root|user FOLDER: a child changes its root directory or its user and continues to
 * work. Then it forks a child of its own, which works, too. */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

__attribute__((noinline)) int other_work(int number)
{
    __asm__ volatile("");
    return number + 1;
}

static int wait_for(pid_t child)
{
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int change(const char *how, const char *folder)
{
    if (strcmp(how, "root") == 0) {
        return chroot(folder) == 0 && chdir("/") == 0 ? 0 : 98;
    }
    return setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0 ? 0 : 97;
}

static int live_elsewhere(const char *how, const char *folder)
{
    int result = change(how, folder);
    result += other_work(1);
    const pid_t child = fork();
    if (child == 0) {
        _exit(other_work(2));
    }
    return result + wait_for(child);
}

int main(int argc, char **argv)
{
    const pid_t child = argc == 3 ? fork() : -1;
    if (child == 0) {
        exit(live_elsewhere(argv[1], argv[2]));
    }
    printf("%d %d\n", other_work(3), wait_for(child));
    return 0;
}
