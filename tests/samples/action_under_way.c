/* Installs a handler. A signal stops the thread directly before the system call, behind the load of
 * its number, until a line is read. Prints whether the kernel then has the program's own handler.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { TRAP_FLAG = 0x100, ACTION_BYTES = 32, MASK_BYTES = 8 };

static const unsigned char system_call[] = {0x0f, 0x05};

static void work(int number)
{
    (void)number;
}

/* Runs before each instruction. */
static void step(int number, siginfo_t *info, void *frame)
{
    greg_t *registers = ((ucontext_t *)frame)->uc_mcontext.gregs;
    const void *pc = (const void *)registers[REG_RIP];
    char line;
    (void)number;
    (void)info;
    if (memcmp(pc, system_call, sizeof(system_call)) == 0 &&
        registers[REG_RAX] == SYS_rt_sigaction) {
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
        if (write(1, "stopped\n", 8) != 8 || read(0, &line, 1) != 1) {
            _exit(1);
        }
    }
}

/* The recorder loads its agent by this thread. */
static void *idle(void *nothing)
{
    for (;;) {
        pause();
    }
    return nothing;
}

static void *kernel_handler(int number)
{
    void *action[ACTION_BYTES / sizeof(void *)] = {NULL};
    syscall(SYS_rt_sigaction, number, NULL, action, MASK_BYTES);
    return action[0];
}

int main(void)
{
    char line;
    pthread_t thread;
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    pthread_create(&thread, NULL, idle, NULL);
    action = (struct sigaction){.sa_handler = work};
    __asm__ volatile("sub $128, %%rsp\n pushf\n orq %0, (%%rsp)\n popf\n add $128, %%rsp"
                     :
                     : "i"(TRAP_FLAG)
                     : "memory", "cc");
    sigaction(SIGUSR1, &action, NULL);
    printf("own handler: %d\n", kernel_handler(SIGUSR1) == (void *)work);
    fflush(stdout);
    return read(0, &line, 1) != 1;
}
