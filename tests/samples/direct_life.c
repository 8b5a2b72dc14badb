/* Does things that a recorder inside the program must survive. The first thread ends before the
 * others, all descriptors are closed, and a child outlives its parent. Calls d_step a known number
 * of times. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int d_step(int value);
void d_work(int rounds);

static volatile int sink;

__attribute__((noipa)) int d_step(int value)
{
    return sink + value;
}

__attribute__((noipa)) void d_work(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        sink = d_step(i);
    }
}

static void *work_alone(void *argument)
{
    /* usually the first thread has ended by then; the process must end in either case */
    usleep(50000);
    d_work(500);
    return argument;
}

/* For each line of input, makes 1000 steps and prints the number of all steps so far. Returns the
 * exit status. */
static int follow_input(void)
{
    char line[64];
    int count = 0;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        d_work(1000);
        printf("%d\n", ++count * 1000);
        fflush(stdout);
    }
    return 5;
}

static int close_everything(const char *path)
{
    for (int fd = 3; fd < 1024; fd++) {
        close(fd);
    }
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    printf("%d\n", file);
    for (int i = 0; i < 200; i++) {
        d_work(100);
        if (dprintf(file, "line %d\n", i) < 0) {
            return 1;
        }
        usleep(1000); /* gives the recorder time to work */
    }
    return 0;
}

static int leave_child(const char *path)
{
    if (fork() == 0) {
        const pid_t parent = getppid();
        d_work(100);
        while (getppid() == parent) {
            usleep(1000);
        }
        d_work(3000000); /* makes more calls than the recorder's ring holds */
        const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dprintf(file, "done\n");
        _exit(0);
    }
    d_work(10);
    return 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const char *path = argc > 2 ? argv[2] : "/dev/null";
    pthread_t thread;
    d_work(1000);
    if (strcmp(how, "leave") == 0) {
        if (pthread_create(&thread, NULL, work_alone, NULL) != 0) {
            return 1;
        }
        pthread_exit(NULL);
    } else if (strcmp(how, "input") == 0) {
        return follow_input();
    } else if (strcmp(how, "close") == 0) {
        return close_everything(path);
    } else if (strcmp(how, "child") == 0) {
        return leave_child(path);
    } else if (strcmp(how, "quick") == 0) {
        _exit(0);
    } else if (strcmp(how, "replace") == 0) {
        execv(argv[2], argv + 2);
        return 127;
    }
    return 3;
}
