#include "agent/drain/open_calls.h"

#include "agent/host/clock.h"

#include <stdlib.h>

/* Copies the open calls of one thread to `calls`, which has space for all. Returns their number. */
static size_t copy(const sj_drain_shared *shared, pid_t tid, sj_stack_frame *calls)
{
    size_t count = 0;
    for (size_t i = 0; i < shared->preopened_count; i++) {
        const sj_open_call_at_attach *call = &shared->preopened[i];
        if (call->tid == tid) {
            calls[count++] = (sj_stack_frame){.function = call->function, .stack = call->stack};
        }
    }
    return count;
}

static void forget(const sj_drain_shared *shared, pid_t tid)
{
    for (size_t i = 0; i < shared->preopened_count; i++) {
        shared->preopened[i].tid = shared->preopened[i].tid == tid ? 0 : shared->preopened[i].tid;
    }
}

static bool has_preopened(const sj_drain_shared *shared, pid_t pid)
{
    return pid == shared->preopened_pid && shared->preopened_count > 0;
}

sj_status sj_open_calls_enter(const sj_process_drain *process, sj_thread_drain *thread)
{
    sj_drain_shared *shared = process->shared;
    if (!has_preopened(shared, process->tracked.pid)) {
        return SJ_OK;
    }
    sj_stack_frame *calls = calloc(shared->preopened_count, sizeof(*calls));
    if (calls == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = SJ_OK;
    const size_t count = copy(shared, (pid_t)thread->emitter.tid, calls);
    const sj_policy_judge judge = sj_drain_judge(shared);
    sj_thread_emitter *emitter = &thread->emitter;
    if (count > 0 && sj_policy_judge_thread(&judge, emitter->name)) {
        const uint64_t ticks = shared->preopened_ticks;
        sj_thread_emitter_start_earlier(emitter, ticks);
        thread->unflushed = count;
        status = sj_assembler_preopen(thread->assembler, calls, count, ticks);
    }
    free(calls);
    return status;
}

void sj_open_calls_forget(const sj_process_drain *process, const sj_thread_drain *thread)
{
    if (has_preopened(process->shared, process->tracked.pid)) {
        forget(process->shared, (pid_t)thread->emitter.tid);
    }
}

size_t sj_open_calls_count(const sj_drain_shared *shared, pid_t pid)
{
    size_t count = 0;
    for (size_t i = 0; has_preopened(shared, pid) && i < shared->preopened_count; i++) {
        count += shared->preopened[i].tid != 0;
    }
    return count;
}

/* Enters the calls of a thread that has recorded nothing, and ends its stream. If the thread has
 * ended and its process runs, its calls count as unwound. */
static sj_status send_calls(const sj_process_drain *process, sj_thread_emitter *emitter,
                            const sj_stack_frame *calls, size_t count)
{
    sj_drain_shared *shared = process->shared;
    const uint64_t gone_ticks = process->ended_ticks;
    const uint64_t now_ticks = gone_ticks != 0 ? gone_ticks : sj_clock_ticks();
    const bool has_ended = !sj_tracked_process_has_ended(&process->tracked) &&
                           !sj_tracked_process_has_thread(&process->tracked, emitter->tid);
    const sj_assembler_options options = {.session =
                                              *sj_frame_writer_session(shared->options.writer),
                                          .start_ticks = shared->preopened_ticks,
                                          .clock_step = shared->clock_step,
                                          .kept_step = shared->kept_step,
                                          .encoder = shared->encoder};
    sj_assembler_sink sink;
    sj_assembler *assembler;
    sj_thread_emitter_sink(emitter, &sink);
    SJ_TRY(sj_assembler_new(&options, &sink, &assembler));
    emitter->assembler = assembler;
    sj_status status = sj_assembler_preopen(assembler, calls, count, shared->preopened_ticks);
    if (status == SJ_OK) {
        status = sj_thread_emitter_announce(emitter);
    }
    if (status == SJ_OK) {
        status = sj_assembler_end(assembler, now_ticks, has_ended, 0);
    }
    if (status == SJ_OK) {
        status = sj_thread_emitter_end(emitter, now_ticks);
    }
    sj_assembler_counters counters;
    sj_assembler_get_counters(assembler, &counters);
    sj_assembler_free(assembler);
    SJ_TRY(status);
    shared->ended.threads++;
    shared->ended.calls += counters.calls;
    shared->ended.unwound += counters.unwound;
    shared->ended.lost_calls += counters.refused_calls;
    shared->ended.lost_events += counters.refused_events;
    return SJ_OK;
}

/* Sends the open calls of a thread that has recorded nothing, unless the policy does not want the
 * thread. */
static sj_status report_silent_thread(const sj_process_drain *process, pid_t tid,
                                      const sj_stack_frame *calls, size_t count)
{
    const sj_policy_judge judge = sj_drain_judge(process->shared);
    sj_thread_slot no_slot = {0};
    sj_thread_emitter emitter = {.shared = process->shared,
                                 .process = process->number,
                                 .tid = (uint32_t)tid,
                                 .is_main = tid == process->tracked.pid,
                                 .start_ticks = process->shared->preopened_ticks};
    sj_read_progress_init(&emitter.progress, &no_slot);
    sj_thread_read_name(process->tracked.pid, emitter.tid, emitter.name);
    if (!sj_policy_judge_thread(&judge, emitter.name)) {
        return SJ_OK;
    }
    emitter.number = sj_drain_next_thread(process->shared);
    const sj_status status = send_calls(process, &emitter, calls, count);
    sj_thread_emitter_deinit(&emitter);
    return status;
}

sj_status sj_open_calls_report_remaining(const sj_process_drain *process)
{
    sj_drain_shared *shared = process->shared;
    if (!has_preopened(shared, process->tracked.pid)) {
        return SJ_OK;
    }
    sj_stack_frame *calls = calloc(shared->preopened_count, sizeof(*calls));
    sj_status status = calls != NULL ? SJ_OK : SJ_ENOMEM;
    for (size_t i = 0; status == SJ_OK && i < shared->preopened_count; i++) {
        const pid_t tid = shared->preopened[i].tid;
        if (tid == 0) {
            continue;
        }
        status = report_silent_thread(process, tid, calls, copy(shared, tid, calls));
        if (status == SJ_OK) {
            forget(shared, tid);
        }
    }
    free(calls);
    return status;
}
