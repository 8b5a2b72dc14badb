#include "agent/drain/thread_drain.h"

#include "agent/drain/block_sink.h"
#include "agent/drain/open_calls.h"
#include "agent/host/clock.h"
#include "agent/ptrace/proc_status.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <unistd.h>

#define NAME_PAUSE_MIN_NS UINT64_C(10000000)
#define NAME_PAUSE_MAX_NS UINT64_C(2000000000)

static const sj_slice no_payload = {0};

static sj_status send_thread(const sj_thread_drain *thread)
{
    Sojourn__Thread message = SOJOURN__THREAD__INIT;
    sj_frame_writer *writer = thread->process->shared->options.writer;
    const sj_thread_slot *slot = sj_arena_view_slot(&thread->process->view, thread->reader.slot);
    uint64_t memory[SJ_SLOT_MEMORY];
    message.session_id = sj_frame_writer_session_bytes(writer);
    message.process = thread->process->number;
    message.thread = thread->number;
    message.tid = thread->tid;
    message.name = (char *)(uintptr_t)thread->name;
    message.started_ticks = thread->start_ticks;
    message.ended_ticks = thread->ended_ticks;
    message.n_stream = thread->stream_count;
    message.stream = thread->streams;
    message.is_main = thread->tid == (uint32_t)thread->process->tracked.pid;
    message.dropped_calls = atomic_load(&slot->dropped_calls) + thread->discarded_calls;
    message.dropped_events = atomic_load(&slot->dropped_events) + thread->discarded_events;
    message.waited_ticks = atomic_load(&slot->waited_ticks);
    message.cpu_ns_and_one = atomic_load(&slot->cpu_ns);
    message.allocated_bytes_and_one = atomic_load(&slot->allocated_bytes);
    message.n_memory_and_one = atomic_load(&slot->memory[0]) != 0 ? SJ_SLOT_MEMORY : 0;
    message.memory_and_one = memory;
    for (size_t i = 0; i < message.n_memory_and_one; i++) {
        memory[i] = atomic_load(&slot->memory[i]);
    }
    return sj_frame_writer_send(writer, SJ_FRAME_THREAD, &message.base, no_payload);
}

static uint32_t open_stream(void *context, uint64_t stack_address, bool own_stack,
                            uint64_t first_ticks)
{
    sj_thread_drain *thread = context;
    const uint32_t stream = sj_drain_next_stream(thread->process->shared, thread->tid);
    (void)stack_address;
    (void)own_stack;
    (void)first_ticks;
    if (sj_array_reserve(&thread->streams, &thread->stream_capacity, thread->stream_count, 1,
                         sizeof(*thread->streams)) == SJ_OK) {
        thread->streams[thread->stream_count++] = stream;
        /* An error can be ignored: the next frame of the thread contains the same. */
        (void)!(thread->is_announced ? send_thread(thread) : SJ_OK);
    }
    return stream;
}

/* The records and losses of a block that are not in the spool yet. */
typedef struct held_records {
    uint64_t calls; /* lost calls */
    uint64_t events;
    /* endings without a record: of this block, or of a refused block that this one accounts for */
    int64_t endings;
} held_records;

static held_records count_held(const sj_thread_drain *thread, const sj_block_header *header)
{
    sj_assembler_counters counters;
    sj_assembler_get_counters(thread->assembler, &counters);
    const int64_t offered = counters.offered_endings - thread->known_endings;
    const int64_t reported = (int64_t)(header->event_count + header->lost_events);
    const int64_t endings = offered < reported ? offered : reported;
    return (held_records){.calls = header->lost_calls + counters.offered_kept_calls,
                          .events = (uint64_t)(reported - endings),
                          .endings = endings};
}

/* Reports a loss of the thread by a gap frame. If this process is killed meanwhile, the loss is
 * neither missed nor reported twice. */
static sj_status send_gap(sj_thread_drain *thread, uint32_t stream, const sj_gap *gap,
                          const held_records *held)
{
    sj_frame_writer *writer = thread->process->shared->options.writer;
    sj_chunk_reader_offer(&thread->reader, SJ_OFFER_GAP | sj_frame_writer_next_gap(writer),
                          held->calls, held->events);
    const sj_status status =
        sj_frame_writer_gap(writer, (sj_gap_reason)gap->reason, thread->number, stream, gap->calls,
                            gap->events, gap->start_ticks, gap->end_ticks);
    if (status == SJ_OK) {
        sj_chunk_reader_sent(&thread->reader, held->calls, held->events);
    } else {
        sj_chunk_reader_refused(&thread->reader);
    }
    return status;
}

/* Writes a block, and subtracts `held` from what is unsent. */
static sj_status write_held(sj_thread_drain *thread, const sj_block_header *header, sj_slice bytes,
                            const held_records *held)
{
    const sj_drain_shared *shared = thread->process->shared;
    sj_chunk_reader_save(&thread->reader);
    sj_chunk_reader_offer(&thread->reader, sj_block_sink_next(shared, header), held->calls,
                          held->events);
    const sj_status status = sj_block_sink_write(shared, header, bytes);
    if (status != SJ_OK) {
        sj_chunk_reader_refused(&thread->reader);
        return status;
    }
    sj_chunk_reader_sent(&thread->reader, held->calls, held->events);
    thread->known_endings += held->endings;
    return SJ_OK;
}

/* Reports the gaps of a block that is in the sums of a profile. `endings` of their events have no
 * record. A gap that cannot be sent stays unsent: the end of the thread reports it. */
static void send_gaps(sj_thread_drain *thread, uint32_t stream, int64_t endings)
{
    size_t count = 0;
    const sj_gap *gaps = sj_profiler_gaps(thread->process->shared->profiler, &count);
    for (size_t i = 0; i < count; i++) {
        const sj_gap *gap = &gaps[i];
        const int64_t own = endings < (int64_t)gap->events ? endings : (int64_t)gap->events;
        const held_records held = {
            .calls = gap->calls, .events = gap->events - (uint64_t)own, .endings = own};
        if (gap->reason == SJ_GAP_BEFORE_RECORDING ||
            send_gap(thread, stream, gap, &held) != SJ_OK) {
            continue;
        }
        endings -= own;
        thread->known_endings += own;
        thread->reported_lost_calls += gap->calls;
        thread->reported_lost_events += gap->events;
    }
}

/* Adds a block to the sums of a profile, then reports its gaps. */
static sj_status write_to_profile(sj_thread_drain *thread, const sj_block_header *header,
                                  sj_slice bytes)
{
    const held_records held = count_held(thread, header);
    const int64_t events = header->event_count;
    held_records summed = {.calls = held.calls - header->lost_calls};
    if (events != 0) { /* without events, the sums do not change */
        summed.endings = held.endings < events ? held.endings : events;
        summed.events = (uint64_t)(events - summed.endings);
    }
    SJ_TRY(write_held(thread, header, bytes, &summed));
    const int64_t rest = held.endings - summed.endings;
    send_gaps(thread, header->stream, rest > 0 ? rest : 0);
    return SJ_OK;
}

static sj_status write_block(void *context, const sj_block_header *header, sj_slice bytes)
{
    sj_thread_drain *thread = context;
    if (thread->process->shared->profiler != NULL) {
        return write_to_profile(thread, header, bytes);
    }
    const held_records held = count_held(thread, header);
    SJ_TRY(write_held(thread, header, bytes, &held));
    thread->reported_lost_calls += header->lost_calls;
    thread->reported_lost_events += header->lost_events;
    return SJ_OK;
}

static void write_mark(void *context, uint32_t mark_index, bool end, uint64_t ticks)
{
    const sj_thread_drain *thread = context;
    const sj_drain_shared *shared = thread->process->shared;
    const sj_arena_mark *mark = sj_arena_view_mark(&thread->process->view, mark_index);
    char name[SJ_ARENA_MARK_BYTES + 1] = "";
    memcpy(name, mark->name, SJ_ARENA_MARK_BYTES);
    (void)!sj_frame_writer_mark(shared->options.writer, name, end, ticks, thread->number, "app");
}

/* Applies the value rules to a value, and fires the triggers of the rules whose condition it
 * meets. */
static sj_rule_set apply_value_rules(void *context, uint32_t function, const sj_block_value *value,
                                     uint64_t ticks)
{
    const sj_thread_drain *thread = context;
    const sj_drain_shared *shared = thread->process->shared;
    const sj_value_rules *values = shared->options.policy->selection.values;
    sj_rule_set kept = {0};
    if (shared->options.rules == NULL) {
        return kept;
    }
    const sj_ruled_values *asked = sj_function_rules_values(shared->options.rules, function);
    SJ_EACH_RULE (i, &asked->values) {
        const sj_value_rule *rule = &values->items[i];
        /* Rules with conditions on the whole call are applied to the call (apply_call_rules). */
        if ((rule->condition_count != 0 && !rule->changes) || !sj_value_rule_holds(rule, value)) {
            continue;
        }
        sj_rule_set_add(&kept, i);
        if (sj_value_rule_has_condition(rule) && shared->triggers != NULL) {
            sj_triggers_event(shared->triggers, SJ_TRIGGER_VALUE, rule->name, 0, ticks,
                              thread->number);
        }
    }
    return kept;
}

/* Applies the rules with conditions on a whole call, and fires the triggers of the rules that it
 * meets. */
static sj_rule_set apply_call_rules(void *context, const sj_assembled_call *call)
{
    const sj_thread_drain *thread = context;
    const sj_drain_shared *shared = thread->process->shared;
    sj_value_rules *values = shared->options.policy->selection.values;
    sj_rule_set met = {0};
    if (shared->options.rules == NULL) {
        return met;
    }
    const sj_function_rules *rules = shared->options.rules;
    const uint32_t caller =
        sj_function_rules_is_import(rules, call->caller) ? call->caller_of_caller : call->caller;
    const sj_call_facts facts = {
        .values = call->values,
        .value_count = call->value_count,
        .duration_ns =
            (uint64_t)((double)(call->now_ticks - call->start_ticks) * shared->options.ns_per_tick),
        .has_ended = call->at_exit,
        .thread = thread->name,
        .called_from = &sj_function_rules_values(rules, caller)->called_from};
    SJ_EACH_RULE (i, &sj_function_rules_values(rules, call->function)->values) {
        const sj_value_rule *rule = &values->items[i];
        if (rule->condition_count == 0 || rule->changes ||
            sj_value_rule_is_late(rule) != call->at_exit ||
            !sj_value_rules_meet(values, (uint32_t)i, &facts)) {
            continue;
        }
        sj_rule_set_add(&met, i);
        if (shared->triggers != NULL) {
            sj_triggers_event(shared->triggers, SJ_TRIGGER_VALUE, rule->name, 0, call->now_ticks,
                              thread->number);
        }
    }
    return met;
}

/* True if the thread was read before: by a recorder that was killed, or until a step failed. */
static bool is_known(const sj_drain_shared *shared, const sj_thread_slot *slot)
{
    return (shared->options.salvage || shared->resumes) && slot->cursor.thread != 0;
}

/* True for the first thread of a forked process, unless a killed recorder or a failed step may have
 * read its beginning. */
static bool is_first_of_fork(const sj_thread_drain *thread, const sj_thread_slot *slot)
{
    const sj_process_drain *process = thread->process;
    return thread->tid == (uint32_t)process->tracked.pid && !process->shared->options.salvage &&
           !is_known(process->shared, slot) &&
           sj_registry_is_forked(process->shared->options.registry, process->number);
}

static sj_status new_assembler(sj_thread_drain *thread, const sj_thread_slot *slot)
{
    const sj_drain_shared *shared = thread->process->shared;
    const sj_policy *policy = shared->options.policy;
    sj_assembler_options options = {
        .session = *sj_frame_writer_session(shared->options.writer),
        .start_ticks = slot->start_ticks,
        .clock_step = shared->clock_step,
        .kept_step = shared->kept_step,
        .is_forked = is_first_of_fork(thread, slot),
        .has_untimed_exits = thread->process->timing != NULL,
        .encoder = shared->encoder,
        .value_rules = policy != NULL ? policy->selection.values : NULL,
    };
    sj_arena_view_stack(slot, &options.stack_low, &options.stack_high);
    const sj_assembler_sink sink = {.context = thread,
                                    .open_stream = open_stream,
                                    .block = write_block,
                                    .mark = write_mark,
                                    .value = apply_value_rules,
                                    .call = apply_call_rules};
    return sj_assembler_new(&options, &sink, &thread->assembler);
}

/* Reports `calls` and `events`, which are all that is unsent. */
static sj_status send_last_gap(sj_thread_drain *thread, sj_gap_reason reason, uint64_t calls,
                               uint64_t events, uint64_t now_ticks)
{
    static const held_records all = {.calls = UINT64_MAX, .events = UINT64_MAX};
    const sj_gap gap = {.reason = reason,
                        .calls = calls,
                        .events = events,
                        .start_ticks = thread->start_ticks,
                        .end_ticks = now_ticks};
    return calls == 0 && events == 0
               ? SJ_OK
               : send_gap(thread, thread->stream_count != 0 ? thread->streams[0] : 0, &gap, &all);
}

/* Reports what a killed recorder, or a failed step, had read and not yet written to the spool. */
static sj_status report_unsent(sj_thread_drain *thread, const sj_thread_slot *slot)
{
    const uint64_t calls = slot->unsent_calls;
    const uint64_t events = slot->cursor.unsent > calls ? slot->cursor.unsent : calls;
    return send_last_gap(thread, SJ_GAP_TORN, calls, events, sj_clock_ticks());
}

static bool asks_of_names(const sj_policy *policy)
{
    return policy->thread_count != 0 || sj_policy_watches_loops(policy);
}

/* True if the policy wants a thread of this name. The rules count the thread. */
static bool is_wanted(const sj_drain_shared *shared, const char *name)
{
    return shared->options.rules != NULL ? sj_function_rules_thread(shared->options.rules, name)
                                         : sj_thread_is_wanted(shared->options.policy, name);
}

/* True if the thread's name must be read. Names are read rarely, because most threads name
 * themselves once, at their start. Exceptions are policies that use names, and the end of the
 * process.
 *
 * The name cannot be read in a process that has ended. A process that records itself must not read
 * it if its seccomp filter may forbid the system call. */
static bool is_name_due(sj_thread_drain *thread)
{
    const sj_process_drain *process = thread->process;
    const sj_policy *policy = process->shared->options.policy;
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    if (process->shared->options.salvage ||
        (process->is_confined && process->tracked.pid == getpid()) ||
        (now_ns < thread->next_name_ns && !process->is_finishing &&
         (policy == NULL || !asks_of_names(policy)))) {
        return false;
    }
    thread->name_pause_ns = thread->name_pause_ns == 0 ? NAME_PAUSE_MIN_NS : thread->name_pause_ns;
    thread->next_name_ns = now_ns + thread->name_pause_ns;
    if (thread->name_pause_ns < NAME_PAUSE_MAX_NS) {
        thread->name_pause_ns *= 2;
    }
    return true;
}

/* Reads the name that the agent stored at exit. Returns false if it stored none. */
static bool read_last_name(const sj_thread_drain *thread, char name[SJ_THREAD_NAME_BYTES])
{
    const sj_thread_slot *slot = sj_arena_view_slot(&thread->process->view, thread->reader.slot);
    memcpy(name, slot->last_name, sizeof(slot->last_name));
    name[sizeof(slot->last_name)] = '\0';
    return name[0] != '\0';
}

/* Reads the thread's current name, or its last one. Returns false if it is unknown or not due. */
static bool find_name(sj_thread_drain *thread, char name[SJ_THREAD_NAME_BYTES])
{
    const sj_tracked_process *tracked = &thread->process->tracked;
    return thread->process->is_gone
               ? read_last_name(thread, name)
               : is_name_due(thread) && sj_thread_read_name(tracked->pid, thread->tid, name);
}

void sj_thread_drain_follow_name(sj_thread_drain *thread)
{
    const sj_process_drain *process = thread->process;
    char name[sizeof(thread->name)];
    if (!find_name(thread, name) || strcmp(name, thread->name) == 0 ||
        /* An exec gives the first thread the name of the new program. */
        (!process->is_gone && thread->tid == (uint32_t)process->tracked.pid &&
         sj_tracked_process_is_replaced(&process->tracked))) {
        return;
    }
    memcpy(thread->name, name, sizeof(name));
    sj_call_filter_drop_all(&thread->reader.filter, !is_wanted(process->shared, name));
    /* An error can be ignored: the next frame of the thread contains the same. */
    (void)!(thread->is_announced ? send_thread(thread) : SJ_OK);
}

sj_status sj_thread_drain_announce(sj_thread_drain *thread)
{
    thread->is_announced = true;
    return send_thread(thread);
}

sj_status sj_thread_drain_set_policy(sj_thread_drain *thread)
{
    const sj_drain_shared *shared = thread->process->shared;
    const sj_policy *policy = shared->options.policy;
    if (policy == NULL) {
        return SJ_OK;
    }
    const sj_call_filter_rules rules = {
        .policy = policy,
        .rules = shared->options.rules,
        .triggers = shared->triggers,
        .minimum_ticks = (uint64_t)((double)policy->minimum_ns / shared->options.ns_per_tick + 0.5),
        .keeps_nothing = !is_wanted(shared, thread->name)};
    SJ_TRY(sj_assembler_restore_frames(thread->assembler));
    sj_assembler_set_rules(thread->assembler, policy->selection.values);
    sj_assembler_set_steps(thread->assembler, shared->clock_step, shared->kept_step);
    return sj_call_filter_set(&thread->reader.filter, &rules, sj_clock_ticks());
}

static void init_filter(sj_thread_drain *thread, const sj_thread_slot *slot)
{
    sj_call_filter_thread about = {.governed = thread->process->governed,
                                   .freed = thread->process->freed,
                                   .view = &thread->process->view,
                                   .thread = thread->number,
                                   .name = thread->name,
                                   .start_ticks = thread->start_ticks};
    sj_arena_view_stack(slot, &about.stack_low, &about.stack_high);
    sj_call_filter_init(&thread->reader.filter, thread->assembler, &about);
    sj_assembler_set_optional_entries(thread->assembler, sj_unhooked_set_was_changed,
                                      thread->process->freed);
}

sj_status sj_thread_drain_new(sj_process_drain *process, uint32_t slot_number,
                              sj_thread_drain **thread)
{
    sj_thread_slot *slot = sj_arena_view_slot(&process->view, slot_number);
    sj_thread_drain *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->process = process;
    const bool was_read = is_known(process->shared, slot);
    made->number = was_read ? slot->cursor.thread : sj_drain_next_thread(process->shared);
    made->tid = slot->tid;
    made->start_ticks = slot->start_ticks;
    memcpy(made->name, slot->name, sizeof(slot->name));
    sj_status status = new_assembler(made, slot);
    if (status == SJ_OK) {
        status = sj_open_calls_enter(process, made);
    }
    if (status == SJ_OK) {
        sj_chunk_reader_init(&made->reader, &process->view, slot_number, made->assembler,
                             process->shared->buffer);
        made->reader.unsent = made->unflushed; /* calls that were open at attach */
        if (was_read) {
            sj_chunk_reader_resume(&made->reader);
            status = report_unsent(made, slot);
        }
        slot->cursor.thread = made->number;
        init_filter(made, slot);
        if (process->timing != NULL) {
            status =
                status == SJ_OK ? sj_chunk_reader_count(&made->reader, process->timing) : status;
        }
        sj_thread_drain_follow_name(made);
        made->reader.receivers.registry = process->shared->options.registry;
        made->reader.receivers.process = process->number;
        made->reader.receivers.freed = process->freed;
        made->reader.renamed.registry = process->shared->options.registry;
        made->reader.renamed.process = process->number;
        made->reader.renamed.freed = process->freed;
    }
    if (status == SJ_OK) {
        status = sj_thread_drain_set_policy(made);
    }
    if (status != SJ_OK) {
        sj_thread_drain_free(made);
        return status;
    }
    sj_open_calls_forget(process, made);
    if (made->unflushed != 0) {
        sj_chunk_reader_settle(&made->reader, 0, made->unflushed);
    }
    *thread = made;
    return SJ_OK;
}

void sj_thread_drain_free(sj_thread_drain *thread)
{
    if (thread != NULL) {
        sj_chunk_reader_deinit(&thread->reader);
        sj_assembler_free(thread->assembler);
        free(thread->streams);
        free(thread);
    }
}

sj_status sj_thread_drain_read(sj_thread_drain *thread, sj_read_mode mode, uint64_t now_ns,
                               uint64_t *records)
{
    uint64_t count = 0;
    const sj_status status = sj_chunk_reader_read(&thread->reader, mode, now_ns, &count);
    thread->unflushed += count;
    *records += count;
    return status;
}

/* True if a main thread has ended before its process. Its tid exists until the process ends. */
static bool has_ended_first(const sj_thread_drain *thread, uint64_t cpu_ns)
{
    const pid_t pid = thread->process->tracked.pid;
    sj_proc_thread facts;
    return thread->tid == (uint32_t)pid && cpu_ns == thread->clock.counters.cpu_ns &&
           sj_proc_thread_read(pid, pid, &facts) == SJ_OK && facts.state == 'Z';
}

/* Reads the thread's allocation counters from its slot. */
static void read_memory(const sj_thread_drain *thread, sj_thread_counters *counters)
{
    const sj_thread_slot *slot = sj_arena_view_slot(&thread->process->view, thread->reader.slot);
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        const uint64_t and_one = atomic_load_explicit(&slot->memory[i], memory_order_relaxed);
        counters->has_memory |= and_one != 0;
        counters->memory[i] = and_one != 0 ? and_one - 1 : 0;
    }
}

sj_status sj_thread_drain_watch(sj_thread_drain *thread)
{
    sj_process_drain *process = thread->process;
    sj_thread_counters now = {0};
    /* A process that records itself must not make a system call that its seccomp filter may
     * forbid. */
    if (process->times == NULL || (process->is_confined && process->tracked.pid == getpid()) ||
        sj_thread_times_read(process->tracked.pid, thread->tid, &now.cpu_ns, &now.ready_ns) !=
            SJ_OK ||
        has_ended_first(thread, now.cpu_ns)) {
        return SJ_OK;
    }
    read_memory(thread, &now);
    return sj_thread_times_note(process->times, &thread->clock, thread->number,
                                sj_clock_ns(CLOCK_MONOTONIC), &now)
               ? sj_thread_times_send(process->times, process->shared->options.writer,
                                      process->number)
               : SJ_OK;
}

/* Ends the last step of a thread. */
static sj_status end_watch(sj_thread_drain *thread)
{
    sj_process_drain *process = thread->process;
    if (process->times == NULL) {
        return SJ_OK;
    }
    if (!sj_tracked_process_has_ended(&process->tracked)) {
        SJ_TRY(sj_thread_drain_watch(thread));
    }
    return sj_thread_times_rest(process->times, &thread->clock, thread->number)
               ? sj_thread_times_send(process->times, process->shared->options.writer,
                                      process->number)
               : SJ_OK;
}

static uint64_t positive_difference(uint64_t all, uint64_t known)
{
    return all > known ? all - known : 0;
}

/* Writes what the assembler counted as lost and no stored block has reported. A later stored block
 * also reports refused blocks and orphan exits, by gaps. */
static void count_unreported(const sj_thread_drain *thread, const sj_assembler_counters *counters,
                             uint64_t *calls, uint64_t *events)
{
    *calls = positive_difference(counters->lost_calls + counters->refused_calls,
                                 thread->reported_lost_calls);
    *events = positive_difference(counters->lost_events + counters->refused_events +
                                      counters->orphan_exits,
                                  thread->reported_lost_events);
}

sj_status sj_thread_drain_flush(sj_thread_drain *thread)
{
    sj_assembler_counters counters;
    uint64_t calls;
    uint64_t events;
    if (!thread->is_announced) {
        SJ_TRY(sj_thread_drain_announce(thread));
    }
    if (thread->unflushed == 0) {
        return SJ_OK;
    }
    thread->unflushed = 0;
    sj_chunk_reader_save(&thread->reader);
    SJ_TRY(sj_assembler_flush(thread->assembler, sj_clock_ticks()));
    sj_assembler_get_counters(thread->assembler, &counters);
    count_unreported(thread, &counters, &calls, &events);
    sj_chunk_reader_settle(&thread->reader, calls, events);
    /* the endings of refused blocks are in `events` */
    thread->known_endings = counters.offered_endings;
    return SJ_OK;
}

/* Reports the drops of a thread that ended while it dropped, and so left no note in its stream. */
static sj_status report_unnoted_drops(sj_thread_drain *thread, uint64_t now_ticks)
{
    sj_chunk_reader *reader = &thread->reader;
    const sj_thread_slot *slot = sj_arena_view_slot(&thread->process->view, reader->slot);
    sj_arena_view_discarded(&thread->process->view, reader->slot, &thread->discarded_calls,
                            &thread->discarded_events);
    const uint64_t calls = positive_difference(
        atomic_load(&slot->dropped_calls) + thread->discarded_calls, reader->noted_calls);
    const uint64_t events = positive_difference(
        atomic_load(&slot->dropped_events) + thread->discarded_events, reader->noted_events);
    if (calls == 0 && events == 0) {
        return SJ_OK;
    }
    reader->noted_calls += calls;
    reader->noted_events += events;
    reader->unsent_calls += calls;
    reader->unsent += events;
    return sj_assembler_add_loss(thread->assembler, SJ_GAP_RING_FULL, calls, events, now_ticks);
}

/* Reports what the assembler counted as lost and no stored block could report. */
static sj_status report_unreported(sj_thread_drain *thread, uint64_t now_ticks)
{
    sj_assembler_counters counters;
    uint64_t calls;
    uint64_t events;
    sj_assembler_get_counters(thread->assembler, &counters);
    count_unreported(thread, &counters, &calls, &events);
    return send_last_gap(thread, SJ_GAP_SPOOL_FULL, calls, events, now_ticks);
}

sj_status sj_thread_drain_end(sj_thread_drain *thread, bool orderly, unsigned block_flags)
{
    const uint64_t gone_ticks = thread->process->ended_ticks;
    const uint64_t now_ticks = gone_ticks != 0 ? gone_ticks : sj_clock_ticks();
    SJ_TRY(end_watch(thread));
    SJ_TRY(sj_chunk_reader_settle_times(&thread->reader));
    SJ_TRY(sj_call_filter_end(&thread->reader.filter, now_ticks));
    SJ_TRY(report_unnoted_drops(thread, now_ticks));
    SJ_TRY(sj_assembler_end(thread->assembler, now_ticks, orderly, block_flags));
    sj_chunk_reader_save(&thread->reader);
    SJ_TRY(report_unreported(thread, now_ticks));
    sj_chunk_reader_settle(&thread->reader, 0, 0); /* everything is sent or reported */
    thread->ended_ticks = now_ticks;
    return send_thread(thread);
}

void sj_thread_drain_add_counters(const sj_thread_drain *thread, sj_drain_counters *counters)
{
    const sj_thread_slot *slot = sj_arena_view_slot(&thread->process->view, thread->reader.slot);
    sj_assembler_counters own;
    sj_assembler_get_counters(thread->assembler, &own);
    counters->threads++;
    counters->records += own.records;
    counters->calls += own.calls;
    counters->returned += own.returned;
    counters->unwound += own.unwound;
    if (own.longest_throw > counters->longest_throw) {
        counters->longest_throw = own.longest_throw;
    }
    counters->inherited_exits += own.inherited_exits;
    counters->orphan_exits += own.orphan_exits;
    counters->lost_calls += own.lost_calls + own.refused_calls;
    counters->lost_events += own.lost_events + own.refused_events;
    counters->lost_values += own.lost_values + thread->reader.filter.values.lost;
    counters->dropped_events += atomic_load(&slot->dropped_events) + thread->discarded_events;
    counters->torn += thread->reader.torn;
    counters->short_records += thread->reader.short_records;
    counters->waited_ticks += atomic_load(&slot->waited_ticks);
}
