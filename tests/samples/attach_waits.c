/* One thread for each system call that the kernel interrupts at a stop without restarting it, and
 * for some that it restarts. Each waits again and again, as long as the program has input, and
 * counts the waits that end with EINTR. None should, because the program has no signal handler.
 *
 * Prints "ready", then one line "NAME WAITS INTERRUPTED MISTAKES" for each call. */
#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 100, QUEUE_BYTES = 64 };

#define WAIT_NS (WAIT_MS * 1000000L)

static const struct timespec limit = {.tv_nsec = WAIT_NS};
static atomic_bool is_over;
static int nothing[2]; /* a pipe without content */
static int events;     /* an epoll without events */
static int sockets[2]; /* with a time limit, and without content */
static int semaphores;
static int messages;
static aio_context_t requests;

/* Each of these functions waits once. It returns -1 with errno as the call does, or 0 if the time
 * is over. */
static int wait_epoll_wait(void)
{
    struct epoll_event event;
    return epoll_wait(events, &event, 1, WAIT_MS);
}

static int wait_epoll_pwait(void)
{
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    return epoll_pwait(events, &event, 1, WAIT_MS, &none);
}

static int wait_poll(void)
{
    struct pollfd polled = {.fd = nothing[0], .events = POLLIN};
    return poll(&polled, 1, WAIT_MS);
}

static int wait_ppoll(void)
{
    struct pollfd polled = {.fd = nothing[0], .events = POLLIN};
    return ppoll(&polled, 1, &limit, NULL);
}

static int wait_select(void)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(nothing[0], &set);
    return select(nothing[0] + 1, &set, NULL, NULL, &(struct timeval){.tv_usec = WAIT_MS * 1000});
}

static int wait_nanosleep(void)
{
    return nanosleep(&limit, NULL);
}

static int wait_clock_nanosleep(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    return errno == 0 ? 0 : -1;
}

static int wait_sigtimedwait(void)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    return sigtimedwait(&wanted, NULL, &limit);
}

static int wait_semop(void)
{
    struct sembuf take = {.sem_op = -1};
    return semtimedop(semaphores, &take, 1, &limit);
}

/* Has no time limit: the main thread sends the messages. */
static int wait_msgrcv(void)
{
    struct {
        long type;
        char text[QUEUE_BYTES];
    } message;
    return msgrcv(messages, &message, QUEUE_BYTES, 0, 0) >= 0 ? 0 : -1;
}

static int wait_recv(void)
{
    char byte;
    return recv(sockets[0], &byte, 1, 0) >= 0 ? 0 : -1;
}

static int wait_read(void)
{
    char byte;
    return read(sockets[0], &byte, 1) >= 0 ? 0 : -1;
}

static int wait_io_getevents(void)
{
    struct io_event event;
    struct timespec time = limit;
    return (int)syscall(SYS_io_getevents, requests, 1, 1, &event, &time);
}

typedef struct waiter {
    const char *name;
    int (*wait)(void);
    unsigned long waits;
    unsigned long interrupted;
    unsigned long mistakes;
    pthread_t thread;
} waiter;

static waiter waiters[] = {
    {.name = "epoll_wait", .wait = wait_epoll_wait},
    {.name = "epoll_pwait", .wait = wait_epoll_pwait},
    {.name = "poll", .wait = wait_poll},
    {.name = "ppoll", .wait = wait_ppoll},
    {.name = "select", .wait = wait_select},
    {.name = "nanosleep", .wait = wait_nanosleep},
    {.name = "clock_nanosleep", .wait = wait_clock_nanosleep},
    {.name = "sigtimedwait", .wait = wait_sigtimedwait},
    {.name = "semop", .wait = wait_semop},
    {.name = "msgrcv", .wait = wait_msgrcv},
    {.name = "recv", .wait = wait_recv},
    {.name = "read", .wait = wait_read},
    {.name = "io_getevents", .wait = wait_io_getevents},
};

enum { WAITERS = sizeof(waiters) / sizeof(waiters[0]) };

/* The function that is recorded. */
__attribute__((noipa)) void count_wait(waiter *own, int result)
{
    own->waits++;
    if (result < 0 && errno == EINTR) {
        own->interrupted++;
    } else if (result != 0 && errno != EAGAIN) { /* EAGAIN: the time is over */
        own->mistakes++;
    }
}

static void *wait_often(void *argument)
{
    waiter *own = argument;
    while (!atomic_load(&is_over)) {
        count_wait(own, own->wait());
    }
    return NULL;
}

static bool prepare(void)
{
    const struct timeval time = {.tv_usec = WAIT_MS * 1000};
    events = epoll_create1(0);
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    messages = msgget(IPC_PRIVATE, 0600);
    return events >= 0 && semaphores >= 0 && messages >= 0 && pipe(nothing) == 0 &&
           socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0 &&
           setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) == 0 &&
           syscall(SYS_io_setup, 1, &requests) == 0;
}

/* Sends a message each WAIT_MS until the input ends. */
static void serve(void)
{
    const struct {
        long type;
        char text[1];
    } message = {.type = 1};
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte = 0;
    for (;;) {
        if (poll(&input, 1, WAIT_MS) > 0 && read(STDIN_FILENO, &byte, 1) <= 0) {
            break;
        }
        (void)!msgsnd(messages, &message, sizeof(message.text), IPC_NOWAIT);
    }
    atomic_store(&is_over, true);
    (void)!msgsnd(messages, &message, sizeof(message.text), IPC_NOWAIT);
}

int main(void)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1); /* as sigtimedwait needs */
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    if (!prepare()) {
        perror("attach_waits");
        return 2;
    }
    for (int i = 0; i < WAITERS; i++) {
        if (pthread_create(&waiters[i].thread, NULL, wait_often, &waiters[i]) != 0) {
            return 2;
        }
    }
    puts("ready");
    fflush(stdout);
    serve();
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        printf("%s %lu %lu %lu\n", waiters[i].name, waiters[i].waits, waiters[i].interrupted,
               waiters[i].mistakes);
    }
    msgctl(messages, IPC_RMID, NULL);
    semctl(semaphores, 0, IPC_RMID);
    return 0;
}
