#include "agent/recording/code_samples.h"

#include "agent/host/clock.h"
#include "agent/ptrace/arch.h"
#include "agent/ptrace/proc_status.h"
#include "agent/ptrace/remote_stubs.h"
#include "agent/ptrace/waits.h"
#include "agent/session/json_report.h"

#include <dirent.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_PERIOD_NS UINT64_C(10000000)
#define PERIOD_NS UINT64_C(50000000)
#define FIRST_NS UINT64_C(1000000000)
#define IDLE_PERIOD_NS UINT64_C(320000000)
#define NS_PER_CPU_NS UINT64_C(50) /* a round takes at most 2 % of a processor */

enum {
    /* With so many calls in a second, the calls themselves show where time passes. */
    CALLS_MOST = 40000,
    PROCESSES_MOST = 16,
    THREADS_MOST = 64,  /* checked in one process */
    STOPPED_MOST = 4,   /* stopped in one process in a round */
    SEEN_THREADS = 256, /* a power of two */
    STOP_TIMEOUT_MS = 200,
    REFUSALS_MOST = 8, /* in a row: this process may not be traced */
    FILES_MOST = 64
};

typedef struct code_file {
    char *path;
    uint64_t ns;
} code_file;

/* The state of a thread in the last round. */
typedef struct seen_thread {
    pid_t tid;
    uint64_t waits;
    uint64_t round;
} seen_thread;

struct sj_code_samples {
    sj_frame_writer *writer;
    sj_registry *registry;
    sj_drain *drain;
    pthread_t thread;
    uint64_t period_ns;
    bool is_left_traced; /* see sj_tracee */
    int refusals;        /* stops in a row that the kernel did not permit */
    uint64_t round;
    bool is_busy;   /* a thread was running in the last round */
    uint64_t calls; /* recorded calls in the last round */
    seen_thread seen[SEEN_THREADS];
    uint64_t sampled_ns, generated_ns, other_ns;
    code_file files[FILES_MOST];
    size_t file_count;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t changed;
    bool finish;
};

/* The module that contains a program counter. */
typedef struct module_search {
    uint64_t pc;
    char path[PATH_MAX]; /* "": none */
} module_search;

static void compare_module(void *context, const sj_remote_module *module)
{
    module_search *search = context;
    if (search->pc >= module->code_low && search->pc < module->code_high) {
        snprintf(search->path, sizeof(search->path), "%s", module->path);
    }
}

static void count_file(sj_code_samples *samples, const char *path, uint64_t ns)
{
    size_t at = 0;
    while (at < samples->file_count && strcmp(samples->files[at].path, path) != 0) {
        at++;
    }
    if (at == samples->file_count) {
        char *copy = at < FILES_MOST ? strdup(path) : NULL;
        if (copy == NULL) {
            samples->other_ns += ns;
            return;
        }
        samples->files[samples->file_count++] = (code_file){.path = copy};
    }
    samples->files[at].ns += ns;
}

/* True if the address is in a stub of the agent. The probes there belong to recorded calls. */
static bool is_in_stub(const sj_tracee *target, uint64_t pc)
{
    sj_remote_stubs stubs = {0};
    const bool is_found =
        sj_remote_stubs_read(target, &stubs) == SJ_OK && sj_remote_stubs_find(&stubs, pc) != NULL;
    sj_remote_stubs_deinit(&stubs);
    return is_found;
}

static void count_sample(sj_code_samples *samples, const sj_tracee *target, uint64_t pc,
                         uint64_t ns)
{
    static const char agent_file[] = "/libsojourn-agent.so";
    module_search *search = calloc(1, sizeof(*search));
    if (search == NULL) {
        return;
    }
    search->pc = pc;
    const sj_status status = sj_remote_modules_each(target->pid, compare_module, search);
    const bool is_agent = strstr(search->path, agent_file) != NULL ||
                          (search->path[0] == '\0' && is_in_stub(target, pc));
    if (status == SJ_OK && !is_agent && sj_tracee_is_there(target)) {
        samples->sampled_ns += ns;
        if (search->path[0] == '\0') {
            samples->generated_ns += ns;
        } else {
            count_file(samples, search->path, ns);
        }
    }
    free(search);
}

/* Stops a running thread for some microseconds to read its program counter. A thread that has begun
 * a wait since the round checked it is not stopped: the stop might end the wait, or cut a write
 * short.
 */
static void sample_thread(sj_code_samples *samples, sj_tracee *target, const seen_thread *seen,
                          uint64_t ns)
{
    const pid_t tid = seen->tid;
    size_t thread;
    sj_registers state = {0};
    bool is_known = false;
    if (sj_proc_count_waits(target->pid, tid) != seen->waits) {
        return;
    }
    const sj_status status = sj_tracee_stop_one(target, tid, &thread);
    samples->refusals = status == SJ_EPERM ? samples->refusals + 1 : 0;
    if (status == SJ_OK) {
        is_known = sj_registers_get(tid, &state) == SJ_OK && !state.in_syscall;
    }
    sj_tracee_resume_all(target);
    if (is_known) {
        count_sample(samples, target, state.pc, ns);
    }
}

/* True if a thread runs and has not waited since the last round. It will most likely not wait in
 * the next microseconds either. */
static bool is_computing(sj_code_samples *samples, pid_t pid, pid_t tid)
{
    seen_thread *seen = &samples->seen[(size_t)tid % SEEN_THREADS];
    sj_proc_thread facts;
    if (sj_proc_thread_read(pid, tid, &facts) != SJ_OK || facts.state != 'R') {
        return false;
    }
    samples->is_busy = true;
    const seen_thread now = {
        .tid = tid, .waits = sj_proc_count_waits(pid, tid), .round = samples->round};
    const bool is_same =
        seen->tid == tid && seen->waits == now.waits && seen->round + 1 == samples->round;
    *seen = now;
    return is_same;
}

/* Writes the threads of a process that compute. Returns their number. */
static size_t find_computing(sj_code_samples *samples, pid_t pid, seen_thread found[STOPPED_MOST])
{
    char path[64];
    size_t count = 0;
    size_t seen = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(folder);
         entry != NULL && count < STOPPED_MOST && seen < THREADS_MOST; entry = readdir(folder)) {
        const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0) {
            seen++;
            if (is_computing(samples, pid, tid)) {
                found[count++] = samples->seen[(size_t)tid % SEEN_THREADS];
            }
        }
    }
    closedir(folder);
    return count;
}

/* Samples the threads of a process that compute. If `is_known`, their time passed in recorded
 * calls: it is counted, and no thread is stopped. */
static void sample_process(sj_code_samples *samples, pid_t pid, uint64_t ns, bool is_known)
{
    seen_thread found[STOPPED_MOST];
    sj_tracee target;
    const size_t count = find_computing(samples, pid, found);
    if (is_known || count == 0) {
        samples->sampled_ns += count * ns;
        return;
    }
    sj_tracee_lock();
    if (sj_tracee_open(pid, &target, NULL) == SJ_OK) {
        target.stop_timeout_ms = STOP_TIMEOUT_MS;
        for (size_t i = 0; i < count && !target.is_left_traced; i++) {
            sample_thread(samples, &target, &found[i], ns);
        }
        sj_tracee_close(&target);
        samples->is_left_traced |= target.is_left_traced;
    }
    sj_tracee_unlock();
}

/* Takes samples that stand for `ns` each. Stops no thread if many calls were recorded in this
 * time. */
static void sample_all(sj_code_samples *samples, uint64_t ns)
{
    pid_t pids[PROCESSES_MOST];
    sj_drain_counters counters;
    sj_drain_get_counters(samples->drain, &counters);
    const uint64_t calls = counters.calls - samples->calls;
    samples->calls = counters.calls;
    samples->round++;
    samples->is_busy = false;
    const size_t count = sj_registry_list_living(samples->registry, pids, PROCESSES_MOST);
    for (size_t i = 0; i < count && !samples->is_left_traced; i++) {
        sample_process(samples, pids[i], ns, calls * UINT64_C(1000000000) > CALLS_MOST * ns);
    }
}

/* Waits for a period. Returns false if the thread is to end. */
static bool wait_for(sj_code_samples *samples, uint64_t ns)
{
    const uint64_t until_ns = sj_clock_ns(CLOCK_MONOTONIC) + ns;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    int result = 0;
    pthread_mutex_lock(&samples->mutex);
    while (!samples->finish && result == 0) {
        result = pthread_cond_timedwait(&samples->changed, &samples->mutex, &until);
    }
    const bool must_continue = !samples->finish;
    pthread_mutex_unlock(&samples->mutex);
    return must_continue;
}

/* The time until the next round: longer while all threads wait, and when a round is expensive
 * because there are many threads. */
static uint64_t choose_period(const sj_code_samples *samples, uint64_t cpu_ns)
{
    uint64_t period_ns = samples->sampled_ns < FIRST_NS ? FIRST_PERIOD_NS : PERIOD_NS;
    if (samples->is_left_traced) {
        period_ns = IDLE_PERIOD_NS;
    } else if (!samples->is_busy) {
        period_ns =
            2 * samples->period_ns < IDLE_PERIOD_NS ? 2 * samples->period_ns : IDLE_PERIOD_NS;
    }
    return period_ns > NS_PER_CPU_NS * cpu_ns ? period_ns : NS_PER_CPU_NS * cpu_ns;
}

/* Takes samples until the end, or until a thread may be left traced. Gives up if the kernel refuses
 * again and again: it may write a line to its log each time. */
static void *take_samples(void *argument)
{
    sj_code_samples *samples = argument;
    while (!samples->is_left_traced && samples->refusals < REFUSALS_MOST &&
           wait_for(samples, samples->period_ns)) {
        const uint64_t begin_ns = sj_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        sample_all(samples, samples->period_ns);
        samples->period_ns =
            choose_period(samples, sj_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
    }
    return NULL;
}

/* Starts a new thread whenever one has left a thread traced: the kernel ends all tracing of a
 * thread that ends. */
static void *run(void *argument)
{
    sj_code_samples *samples = argument;
    pthread_t tracer;
    do {
        samples->is_left_traced = false;
    } while (pthread_create(&tracer, NULL, take_samples, samples) == 0 &&
             pthread_join(tracer, NULL) == 0 && samples->is_left_traced);
    return NULL;
}

sj_code_samples *sj_code_samples_start(sj_frame_writer *writer, sj_registry *registry,
                                       sj_drain *drain)
{
    pthread_condattr_t attributes;
    sj_code_samples *made = sj_waits_are_repeatable() ? calloc(1, sizeof(*made)) : NULL;
    if (made == NULL) {
        return NULL;
    }
    made->writer = writer;
    made->registry = registry;
    made->drain = drain;
    made->period_ns = FIRST_PERIOD_NS;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&made->thread, NULL, run, made) != 0) {
        pthread_cond_destroy(&made->changed);
        pthread_mutex_destroy(&made->mutex);
        free(made);
        return NULL;
    }
    return made;
}

/* Lists the files. Adds the time of those whose path is not UTF-8 to `other_ns`. */
static json_t *list_files(sj_code_samples *samples)
{
    json_t *files = json_array();
    for (size_t i = 0; i < samples->file_count; i++) {
        const code_file *file = &samples->files[i];
        json_t *item = json_pack("{s: s, s: I}", "path", file->path, "ns", (json_int_t)file->ns);
        if (json_array_append_new(files, item) != 0) {
            samples->other_ns += file->ns;
        }
    }
    return files;
}

/* Sends the report. The writer counts reports that it cannot send. */
static void send_samples(sj_code_samples *samples)
{
    json_t *files = list_files(samples);
    json_t *payload =
        json_pack("{s: I, s: I, s: I, s: o}", "sampled_ns", (json_int_t)samples->sampled_ns,
                  "generated_ns", (json_int_t)samples->generated_ns, "other_ns",
                  (json_int_t)samples->other_ns, "files", files);
    const sj_report report = {.ticks = sj_clock_ticks(), .monitor = "code", .kind = "samples"};
    (void)!sj_json_report_send(samples->writer, report, payload);
}

void sj_code_samples_stop(sj_code_samples *samples)
{
    if (samples == NULL) {
        return;
    }
    pthread_mutex_lock(&samples->mutex);
    samples->finish = true;
    pthread_cond_signal(&samples->changed);
    pthread_mutex_unlock(&samples->mutex);
    pthread_join(samples->thread, NULL);
    if (samples->sampled_ns != 0) {
        send_samples(samples);
    }
    for (size_t i = 0; i < samples->file_count; i++) {
        free(samples->files[i].path);
    }
    pthread_cond_destroy(&samples->changed);
    pthread_mutex_destroy(&samples->mutex);
    free(samples);
}
