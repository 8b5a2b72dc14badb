/* Design notes. SQLite, the block decoder and malloc need the listed system calls. All others fail
 * with EPERM, so that a library that tries one can continue without it. `openat` is allowed for the
 * database and temporary files; the SQL guard decides which files may be opened. RLIMIT_DATA counts
 * written memory, not the mapped database. Sanitizers map more than it allows. */
#include "collector-server/http/question_worker.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Three standard files, three of the database, one of blocks; the rest are temporary files. The
 * limit is needed because a statement with many materialized tables could have one of `file_bytes`
 * for each. */
enum { FILES_MAX = 16 };

#if defined(__x86_64__)
#define SJ_AUDIT_MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SJ_AUDIT_MACHINE AUDIT_ARCH_AARCH64
#endif

static const unsigned allowed_calls[] = {
    /* the pipe, the database, temporary files */
    SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_openat, SYS_close, SYS_fstat,
    SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_unlinkat,
    SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_fchmod, SYS_fchown, SYS_fcntl,
    SYS_getcwd, SYS_statfs, SYS_fstatfs,
#if defined(__x86_64__)
    SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_unlink,
#endif
    /* memory */
    SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk,
    /* time, locks, identity, exit */
    SYS_clock_gettime, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_futex,
    SYS_sched_yield, SYS_getrandom, SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid,
    SYS_rt_sigreturn, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_sigaltstack, SYS_restart_syscall,
    SYS_exit, SYS_exit_group};

enum { CALLS = sizeof(allowed_calls) / sizeof(allowed_calls[0]), HEAD = 4, TAIL = 2 };

/* Forbids all system calls that are not in `allowed_calls`. A call by another ABI, such as
 * 32-bit calls on x86-64, ends the process. */
static sj_status forbid_calls(sj_error *error)
{
    struct sock_filter code[HEAD + CALLS + TAIL] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SJ_AUDIT_MACHINE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (size_t i = 0; i < CALLS; i++) {
        /* jumps to the last statement, over the remaining comparisons and the refusal */
        code[HEAD + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed_calls[i],
                                                      (uint8_t)(CALLS - i), 0);
    }
    code[HEAD + CALLS] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & 0xffff));
    code[HEAD + CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = HEAD + CALLS + TAIL, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "seccomp: %s", strerror(errno));
}

static sj_status limit(int resource, int64_t most, sj_error *error)
{
    const struct rlimit wanted = {.rlim_cur = (rlim_t)most, .rlim_max = (rlim_t)most};
    return setrlimit(resource, &wanted) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "setrlimit: %s", strerror(errno));
}

sj_status sj_question_confine(const sj_question_limits *limits, sj_error *error)
{
    (void)signal(SIGXFSZ, SIG_IGN); /* a file at its size limit is handled like a full disk */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)!nice(SJ_QUESTION_NICE); /* harmless if it fails */
    SJ_TRY(limit(RLIMIT_CORE, 0, error));
    SJ_TRY(limit(RLIMIT_NOFILE, FILES_MAX, error));
    SJ_TRY(limit(RLIMIT_FSIZE, limits->file_bytes, error));
#ifndef __SANITIZE_ADDRESS__
    SJ_TRY(limit(RLIMIT_DATA, limits->data_bytes, error));
#endif
    return forbid_calls(error);
}
