#include "agent/modes/stack_sampler.h"

#include "agent/host/clock.h"
#include "agent/policy/thread_filter.h"
#include "agent/ptrace/unwinder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    WAITING_MAX = 4,
    PROCESSES_MAX = 64,
    THREADS_MAX = 256, /* per process */
    FRAMES_MAX = 128,
    PATHS_MAX = 64,
    NAME_BYTES = 160, /* FRAMES_MAX names and PATHS_MAX paths fit into the header of a frame */
    COPY_BYTES = 64 * 1024,
    CAUSE_BYTES = 160
};

struct sj_stack_sampler {
    sj_frame_writer *writer;
    sj_registry *registry;
    pthread_t thread;
    uint64_t next_stack;
    uint64_t next_sample;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t changed;
    bool finish;
    size_t waiting;
    char causes[WAITING_MAX][CAUSE_BYTES];
};

/* One sample of one process. */
typedef struct stack_visit {
    sj_stack_sampler *stacks;
    sj_tracee target;
    sj_unwinder *unwinder;
    sj_remote_stubs stubs;
    uint64_t process;
    uint64_t ticks;
    const char *cause;
    sj_stack_copy copies[THREADS_MAX];
    size_t count;
} stack_visit;

/* Copies the stacks of the stopped threads as they would be without the agent. */
static void copy_all(stack_visit *visit)
{
    const size_t count = visit->target.count < THREADS_MAX ? visit->target.count : THREADS_MAX;
    if (sj_remote_stubs_read(&visit->target, &visit->stubs) == SJ_OK) {
        sj_unwinder_hide_agent(visit->unwinder, &visit->stubs);
    }
    for (size_t i = 0; i < count; i++) {
        sj_stack_copy *copy = &visit->copies[visit->count];
        if (sj_stack_copy_read(&visit->target, visit->target.threads[i].tid, COPY_BYTES, copy) ==
            SJ_OK) {
            sj_remote_stubs_put_back(&visit->stubs, &visit->target, copy->low, copy->bytes,
                                     copy->size);
            visit->count++;
        }
    }
}

/* Texts that a Stack message points to. */
typedef struct stack_texts {
    char functions[FRAMES_MAX][NAME_BYTES];
    char *function_list[FRAMES_MAX];
    uint64_t offsets[FRAMES_MAX];
    uint32_t modules[FRAMES_MAX];
    char paths[PATHS_MAX][NAME_BYTES];
    char *path_list[PATHS_MAX];
    size_t path_count;
} stack_texts;

/* Returns the number of a module's path, from 1; 0 if there are too many. */
static uint32_t number_path(stack_texts *texts, const char *path)
{
    char shortened[NAME_BYTES];
    snprintf(shortened, sizeof(shortened), "%s", path);
    for (size_t i = 0; i < texts->path_count; i++) {
        if (strcmp(texts->paths[i], shortened) == 0) {
            return (uint32_t)i + 1;
        }
    }
    if (texts->path_count == PATHS_MAX) {
        return 0;
    }
    memcpy(texts->paths[texts->path_count], shortened, sizeof(shortened));
    texts->path_list[texts->path_count] = texts->paths[texts->path_count];
    return (uint32_t)++texts->path_count;
}

static void describe_frame(stack_visit *visit, const sj_native_frame *frame, size_t at,
                           stack_texts *texts)
{
    sj_code_place place;
    const uint64_t behind_call = frame->is_activation ? 0 : 1;
    sj_unwinder_locate(visit->unwinder, frame->pc - behind_call, &place);
    snprintf(texts->functions[at], NAME_BYTES, "%s", place.function != NULL ? place.function : "");
    texts->function_list[at] = texts->functions[at];
    texts->offsets[at] = place.offset + behind_call;
    texts->modules[at] = place.path != NULL ? number_path(texts, place.path) : 0;
}

static sj_status send_stack(stack_visit *visit, const sj_stack_copy *copy, stack_texts *texts)
{
    sj_native_frame frames[FRAMES_MAX + 1];
    char name[SJ_THREAD_NAME_BYTES];
    const sj_slice no_payload = {0};
    sj_stack_sampler *stacks = visit->stacks;
    Sojourn__Stack message = SOJOURN__STACK__INIT;
    const size_t found = sj_unwinder_walk(visit->unwinder, copy, frames, FRAMES_MAX + 1);
    size_t count = 0;
    (void)sj_thread_read_name(visit->target.pid, (uint32_t)copy->tid, name);
    texts->path_count = 0;
    /* Frames below code that is in no file (generated code) would be guesses. */
    bool is_lost = false;
    while (count < found && count < FRAMES_MAX && !is_lost) {
        describe_frame(visit, &frames[count], count, texts);
        is_lost = texts->modules[count++] == 0;
    }
    message.session_id = sj_frame_writer_session_bytes(stacks->writer);
    message.stack = ++stacks->next_stack;
    message.taken = stacks->next_sample;
    message.ticks = visit->ticks;
    message.process = visit->process;
    message.tid = (uint32_t)copy->tid;
    message.thread_name = name;
    message.cause = (char *)(uintptr_t)visit->cause;
    message.n_function = message.n_offset = message.n_module = count;
    message.function = texts->function_list;
    message.offset = texts->offsets;
    message.module = texts->modules;
    message.n_path = texts->path_count;
    message.path = texts->path_list;
    message.cut = is_lost || found > FRAMES_MAX || !sj_unwinder_came_to_end(visit->unwinder);
    return sj_frame_writer_send(stacks->writer, SJ_FRAME_STACK, &message.base, no_payload);
}

/* Sends and frees the copies. The process runs again by then. */
static void send_copies(stack_visit *visit)
{
    stack_texts *texts = malloc(sizeof(*texts));
    for (size_t i = 0; i < visit->count; i++) {
        if (texts != NULL) {
            /* If a stack cannot be sent, continue with the next thread. */
            (void)!send_stack(visit, &visit->copies[i], texts);
        }
        sj_stack_copy_deinit(&visit->copies[i]);
    }
    free(texts);
}

static void visit_process(stack_visit *visit, pid_t pid)
{
    sj_tracee_lock();
    if (sj_tracee_open(pid, &visit->target, NULL) == SJ_OK) {
        if (sj_unwinder_new(&visit->target, &visit->unwinder) == SJ_OK &&
            sj_tracee_stop_all(&visit->target, NULL) == SJ_OK) {
            visit->ticks = sj_clock_ticks();
            copy_all(visit);
            sj_tracee_resume_all(&visit->target);
            send_copies(visit);
        }
        sj_unwinder_free(visit->unwinder);
        sj_remote_stubs_deinit(&visit->stubs);
        sj_tracee_close(&visit->target);
    }
    sj_tracee_unlock();
}

static void sample_all(sj_stack_sampler *stacks, const char *cause)
{
    pid_t pids[PROCESSES_MAX];
    stack_visit *visit = malloc(sizeof(*visit));
    const size_t count = sj_registry_list_living(stacks->registry, pids, PROCESSES_MAX);
    stacks->next_sample++;
    for (size_t i = 0; i < count && visit != NULL; i++) {
        *visit = (stack_visit){.stacks = stacks, .cause = cause};
        if (sj_registry_find_process(stacks->registry, pids[i], &visit->process) == SJ_OK) {
            visit_process(visit, pids[i]);
        }
    }
    free(visit);
}

static void *run(void *argument)
{
    sj_stack_sampler *stacks = argument;
    pthread_mutex_lock(&stacks->mutex);
    for (;;) {
        while (stacks->waiting == 0 && !stacks->finish) {
            pthread_cond_wait(&stacks->changed, &stacks->mutex);
        }
        if (stacks->waiting == 0) {
            break;
        }
        char cause[CAUSE_BYTES];
        memcpy(cause, stacks->causes[0], sizeof(cause));
        pthread_mutex_unlock(&stacks->mutex);
        sample_all(stacks, cause);
        pthread_mutex_lock(&stacks->mutex);
        stacks->waiting--;
        memmove(stacks->causes[0], stacks->causes[1], (WAITING_MAX - 1) * sizeof(cause));
    }
    pthread_mutex_unlock(&stacks->mutex);
    return NULL;
}

sj_status sj_stack_sampler_start(sj_frame_writer *writer, sj_registry *registry,
                                 sj_stack_sampler **stacks, sj_error *error)
{
    sj_stack_sampler *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->writer = writer;
    made->registry = registry;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    if (pthread_create(&made->thread, NULL, run, made) != 0) {
        free(made);
        return sj_fail(error, SJ_EIO, "cannot start the thread that takes stacks");
    }
    *stacks = made;
    return SJ_OK;
}

void sj_stack_sampler_stop(sj_stack_sampler *stacks)
{
    if (stacks == NULL) {
        return;
    }
    pthread_mutex_lock(&stacks->mutex);
    stacks->finish = true;
    pthread_cond_signal(&stacks->changed);
    pthread_mutex_unlock(&stacks->mutex);
    pthread_join(stacks->thread, NULL);
    pthread_cond_destroy(&stacks->changed);
    pthread_mutex_destroy(&stacks->mutex);
    free(stacks);
}

sj_status sj_stack_sampler_request(sj_stack_sampler *stacks, const char *cause)
{
    sj_status status = SJ_EAGAIN;
    pthread_mutex_lock(&stacks->mutex);
    if (stacks->waiting < WAITING_MAX) {
        snprintf(stacks->causes[stacks->waiting++], CAUSE_BYTES, "%s", cause);
        pthread_cond_signal(&stacks->changed);
        status = SJ_OK;
    }
    pthread_mutex_unlock(&stacks->mutex);
    return status;
}
