#include "agent/drain/record_stages.h"

#include "agent/drain/governed_calls.h"
#include "agent/host/clock.h"

enum { PORTION = 256 /* places whose full records, four for each place, fit into the cache */ };

/* A row of the table. `feed` works on a batch, which it may change, and passes it to the next
 * row. */
typedef struct record_stage record_stage;
struct record_stage {
    sj_status (*feed)(sj_record_stages *stages, sj_record_batch *batch, const record_stage *next);
};

static sj_status pass_on(sj_record_stages *stages, sj_record_batch *batch, const record_stage *next)
{
    return next->feed(stages, batch, next + 1);
}

static sj_status give_times_to_portion(sj_record_stages *stages, const sj_record_batch *places,
                                       uint32_t at, const record_stage *next)
{
    const uint32_t left = places->count - at;
    sj_record_batch batch = *places;
    size_t count = 0;
    SJ_TRY(sj_untimed_records_read(stages->untimed, places->records + at,
                                   left < PORTION ? left : PORTION, places->now_ticks,
                                   &batch.records, &count, &batch.lost_events));
    batch.count = (uint32_t)count;
    batch.lost_calls = sj_untimed_records_undecided_calls(stages->untimed);
    stages->progress->unsent_calls += batch.lost_calls;
    return pass_on(stages, &batch, next);
}

/* Passes on the records that wait for a time, because the next records are lost. They get times up
 * to now, which may be later than the end of their process. */
static sj_status settle_times(sj_record_stages *stages, sj_record_batch *batch,
                              const record_stage *next)
{
    const uint64_t ticks = sj_clock_ticks();
    size_t count = 0;
    SJ_TRY(sj_untimed_records_settle(stages->untimed, ticks, &batch->records, &count));
    batch->now_ticks = batch->now_ticks > ticks ? batch->now_ticks : ticks;
    batch->count = (uint32_t)count;
    batch->has_values = stages->keeps_values;
    return pass_on(stages, batch, next);
}

/* Makes full records of short ones. */
static sj_status give_times(sj_record_stages *stages, sj_record_batch *batch,
                            const record_stage *next)
{
    if (batch->has_shorts && stages->untimed == NULL) {
        SJ_TRY(sj_record_stages_count(stages, NULL));
    }
    if (stages->untimed == NULL) {
        return pass_on(stages, batch, next);
    }
    if (batch->count == 0) {
        SJ_TRY(settle_times(stages, batch, next));
        sj_untimed_records_lost(stages->untimed);
        return SJ_OK;
    }
    batch->has_values = batch->has_values || stages->keeps_values;
    for (uint32_t at = 0; at < batch->count; at += PORTION) {
        SJ_TRY(give_times_to_portion(stages, batch, at, next));
    }
    stages->keeps_values = batch->has_values && sj_untimed_records_are_kept(stages->untimed);
    return SJ_OK;
}

static sj_status rename_functions(sj_record_stages *stages, sj_record_batch *batch,
                                  const record_stage *next)
{
    SJ_TRY(sj_renamed_functions_follow(&stages->renamed));
    SJ_TRY(sj_renamed_functions_translate(&stages->renamed, batch->records, batch->count));
    return pass_on(stages, batch, next);
}

static sj_status name_receivers(sj_record_stages *stages, sj_record_batch *batch,
                                const record_stage *next)
{
    if (batch->has_values || !sj_receiver_rewriter_are_idle(&stages->receivers)) {
        SJ_TRY(sj_receiver_rewriter_translate(&stages->receivers, batch->records, &batch->count,
                                              batch->now_ticks));
    }
    return pass_on(stages, batch, next);
}

static sj_status count_calls(sj_record_stages *stages, sj_record_batch *batch,
                             const record_stage *next)
{
    if (stages->governed != NULL) {
        sj_governed_calls_count(stages->governed, batch->records, batch->count);
    }
    return pass_on(stages, batch, next);
}

static sj_status assemble(sj_record_stages *stages, sj_record_batch *batch,
                          const record_stage *next)
{
    const size_t held = sj_call_filter_count_held(&stages->filter);
    size_t waiting = 0;
    size_t entries = 0;
    (void)next; /* this is the last stage */
    if (stages->untimed != NULL) {
        waiting = sj_untimed_records_waiting(stages->untimed, &entries);
    }
    stages->progress->waiting = waiting + held;
    stages->progress->waiting_entries = entries + held;
    SJ_TRY(sj_assembler_feed(stages->assembler, batch->records, batch->count, batch->now_ticks));
    return batch->lost_calls == 0 && batch->lost_events == 0
               ? SJ_OK
               : sj_assembler_add_loss(stages->assembler, SJ_GAP_TORN, batch->lost_calls,
                                       batch->lost_events, batch->now_ticks);
}

/* Passes on what the call filter holds back. */
static sj_status release_calls(sj_record_stages *stages, uint64_t now_ticks)
{
    sj_record_batch held = {.now_ticks = now_ticks};
    SJ_TRY(sj_call_filter_release(&stages->filter, &held));
    return assemble(stages, &held, NULL);
}

/* Reports a gap if calls are open that will have no exit. */
static sj_status report_unhooked(sj_record_stages *stages, sj_unhooked_point *point,
                                 uint64_t now_ticks)
{
    SJ_TRY(release_calls(stages, now_ticks));
    return sj_assembler_has_open(stages->assembler, sj_unhooked_point_has, point)
               ? sj_assembler_add_loss(stages->assembler, SJ_GAP_PAUSED, 0, 0, now_ticks)
               : SJ_OK;
}

/* Cuts the batch where functions were unhooked, and reports that at its place among the records. */
static sj_status follow_unhooking(sj_record_stages *stages, sj_record_batch *batch,
                                  const record_stage *next)
{
    sj_record_batch rest = *batch;
    sj_unhooked_point point;
    bool found = true;
    while (found) {
        sj_record_batch part = rest;
        part.count = sj_unhooked_calls_find(&stages->unhooked, rest.records, rest.count,
                                            rest.now_ticks, &point, &found);
        if (found) {
            part.lost_calls = 0;
            part.lost_events = 0;
        }
        rest.records += part.count;
        rest.count -= part.count;
        SJ_TRY(pass_on(stages, &part, next));
        SJ_TRY(found ? report_unhooked(stages, &point, rest.now_ticks) : SJ_OK);
    }
    return SJ_OK;
}

static sj_status filter_calls(sj_record_stages *stages, sj_record_batch *batch,
                              const record_stage *next)
{
    if (!sj_call_filter_is_idle(&stages->filter, batch->has_request)) {
        SJ_TRY(sj_call_filter_apply(&stages->filter, batch));
    }
    return pass_on(stages, batch, next);
}

/* The stages, in the order in which records pass them. */
static const record_stage table[] = {
    {give_times},       /* untimed_records.h */
    {rename_functions}, /* renamed_functions.h */
    {name_receivers},   /* receiver_rewriter.h */
    {count_calls},      /* governed_calls.h */
    {follow_unhooking}, /* unhooked_calls.h */
    {filter_calls},     /* call_filter.h */
    {assemble},         /* agent/assembler */
};

sj_status sj_record_stages_feed(sj_record_stages *stages, const sj_record_batch *batch)
{
    sj_record_batch own = *batch;
    return pass_on(stages, &own, table);
}

sj_status sj_record_stages_end(sj_record_stages *stages, uint64_t now_ticks)
{
    sj_record_batch batch = {.now_ticks = now_ticks};
    sj_unhooked_point point;
    SJ_TRY(stages->untimed != NULL ? settle_times(stages, &batch, table + 1) : SJ_OK);
    SJ_TRY(release_calls(stages, batch.now_ticks));
    return sj_unhooked_calls_end(&stages->unhooked, &point)
               ? report_unhooked(stages, &point, batch.now_ticks)
               : SJ_OK;
}

sj_status sj_record_stages_set_policy(sj_record_stages *stages, const sj_policy_judge *judge,
                                      uint64_t now_ticks)
{
    SJ_TRY(release_calls(stages, now_ticks));
    return sj_call_filter_set(&stages->filter, judge, stages->assembler);
}

sj_status sj_record_stages_count(sj_record_stages *stages, sj_call_timing *timing)
{
    stages->untimed = sj_untimed_records_new(timing, stages->stack_low, stages->stack_high,
                                             stages->has_distances);
    return stages->untimed != NULL ? SJ_OK : SJ_ENOMEM;
}

void sj_record_stages_init(sj_record_stages *stages, const sj_staged_thread *thread,
                           sj_assembler *assembler, sj_read_progress *progress)
{
    *stages = (sj_record_stages){.has_distances = thread->view->has_distances,
                                 .renamed = {.registry = thread->registry,
                                             .process = thread->process,
                                             .freed = thread->freed},
                                 .receivers = {.registry = thread->registry,
                                               .process = thread->process,
                                               .freed = thread->freed},
                                 .governed = thread->governed,
                                 .assembler = assembler,
                                 .progress = progress};
    sj_arena_view_stack(thread->slot, &stages->stack_low, &stages->stack_high);
    sj_unhooked_calls_init(&stages->unhooked, thread->freed, thread->start_ticks);
    const sj_call_filter_thread filtered = {.view = thread->view,
                                            .number = thread->number,
                                            .name = thread->name,
                                            .stack_low = stages->stack_low,
                                            .stack_high = stages->stack_high};
    sj_call_filter_init(&stages->filter, &filtered);
}

void sj_record_stages_deinit(sj_record_stages *stages)
{
    sj_call_filter_deinit(&stages->filter);
    sj_receiver_rewriter_deinit(&stages->receivers);
    sj_renamed_functions_deinit(&stages->renamed);
    sj_untimed_records_free(stages->untimed);
    stages->untimed = NULL;
}
