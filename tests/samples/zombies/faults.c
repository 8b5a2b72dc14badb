/* Causes faults of its own, and installs and removes signal handlers. The zombie monitor must not
 * affect any of this. Prints what happened. `die` ends by SIGSEGV. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile sig_atomic_t hits;
static char *page;

static void jump_back(int signal)
{
    (void)signal;
    hits++;
    siglongjmp(back, 1);
}

static void open_page(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    hits++;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    if (info->si_addr != page + 5) {
        _exit(9);
    }
}

static void fault_with_jump(void)
{
    struct sigaction old;
    signal(SIGSEGV, jump_back);
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0) {
            *(volatile char *)8 = 1;
        }
    }
    sigaction(SIGSEGV, NULL, &old);
    printf("jumps %d, own handler %d\n", (int)hits, old.sa_handler == jump_back);
}

static void fault_with_info(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESETHAND};
    struct sigaction old;
    action.sa_sigaction = open_page;
    hits = 0;
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, NULL);
    page[5] = 'p';
    sigaction(SIGSEGV, NULL, &old);
    printf("opened %d, %c, default again %d\n", (int)hits, page[5], old.sa_handler == SIG_DFL);
}

static void fault_in_child(void)
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        char *volatile block = malloc(30);
        free(block);
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)16 = 1;
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("child ended by %d\n", WTERMSIG(status));
}

static void allocate_in_handler(int signal)
{
    (void)signal;
    char *volatile block = malloc(50);
    free(block);
    hits++;
}

static void *allocate(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        char *volatile block = malloc((size_t)(i % 300) + 1);
        block[0] = 'a';
        free(block);
    }
    return NULL;
}

/* Forks while other threads allocate. The children allocate, too. */
static void fork_among_threads(void)
{
    pthread_t threads[3];
    int ended = 0;
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, allocate, NULL);
    }
    for (int i = 0; i < 10; i++) {
        int status = 1;
        const pid_t child = fork();
        if (child == 0) {
            allocate(NULL);
            _exit(0);
        }
        waitpid(child, &status, 0);
        ended += status == 0;
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("children %d\n", ended);
}

int main(int argc, char **argv)
{
    fault_with_jump();
    fault_with_info();
    fault_in_child();
    signal(SIGUSR1, allocate_in_handler);
    hits = 0;
    raise(SIGUSR1);
    printf("handler allocated %d\n", (int)hits);
    fork_among_threads();
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "die") == 0) {
        *(volatile char *)24 = 1;
    }
    return 7;
}
