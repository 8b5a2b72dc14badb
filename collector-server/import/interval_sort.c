#include "collector-server/import/interval_sort.h"

#include "proto/base/array.h"

#include <stdlib.h>

enum {
    RUN_INTERVALS = 1 << 20, /* calls of a run, which is sorted in memory: 32 MB */
    MERGE_INTERVALS = 4096   /* calls of a run that are read at a time */
};

typedef struct open_interval {
    sj_interval interval;
    uint32_t before; /* 1 + index of the call around it, or of the next unused place; 0: none */
} open_interval;

/* A part of the temporary file. */
typedef struct sorted_run {
    off_t next; /* offset of the first call that has not been read */
    uint64_t left;
    sj_interval *buffer;
    size_t at, count; /* the calls of `buffer` from `at` on are next */
} sorted_run;

typedef struct interval_sorter {
    const sj_import_log *log;
    FILE *file; /* all runs, one after the other; NULL: there is one run, in `pending` */
    const char *beside;
    sj_interval *pending;
    size_t pending_count, run_intervals;
    sorted_run *runs;
    size_t run_count, run_capacity;
    open_interval *open; /* open calls of the threads, and places that were used for them */
    size_t open_count, open_capacity;
    uint32_t free_place; /* 1 + index of an unused place; 0: none */
    uint32_t *innermost; /* by thread: 1 + index of the innermost open call; 0: none */
} interval_sorter;

static int compare(const void *left, const void *right)
{
    const sj_interval *a = left;
    const sj_interval *b = right;
    if (a->thread != b->thread) {
        return a->thread < b->thread ? -1 : 1;
    }
    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    if (a->end_ns != b->end_ns) {
        return a->end_ns > b->end_ns ? -1 : 1;
    }
    return (a->number > b->number) - (a->number < b->number);
}

static sj_status write_run(interval_sorter *sorter)
{
    qsort(sorter->pending, sorter->pending_count, sizeof(*sorter->pending), compare);
    if (sorter->file == NULL) {
        sorter->file = sj_import_temporary(sorter->beside);
    }
    if (sorter->file == NULL) {
        return SJ_EIO;
    }
    SJ_TRY(sj_array_reserve(&sorter->runs, &sorter->run_capacity, sorter->run_count, 1,
                            sizeof(*sorter->runs)));
    sorter->runs[sorter->run_count++] =
        (sorted_run){.next = ftello(sorter->file), .left = sorter->pending_count};
    const size_t count = sorter->pending_count;
    sorter->pending_count = 0;
    return fwrite(sorter->pending, sizeof(*sorter->pending), count, sorter->file) == count
               ? SJ_OK
               : sj_import_write_failed();
}

static sj_status add(interval_sorter *sorter, const sj_interval *interval)
{
    if (sorter->pending_count == sorter->run_intervals) {
        SJ_TRY(write_run(sorter));
    }
    sorter->pending[sorter->pending_count++] = *interval;
    return SJ_OK;
}

static sj_status open_call(interval_sorter *sorter, const sj_import_record *record, uint64_t number)
{
    uint32_t place = sorter->free_place;
    if (place != 0) {
        sorter->free_place = sorter->open[place - 1].before;
    } else {
        SJ_TRY(sj_array_reserve(&sorter->open, &sorter->open_capacity, sorter->open_count, 1,
                                sizeof(*sorter->open)));
        place = (uint32_t)++sorter->open_count;
    }
    sorter->open[place - 1] =
        (open_interval){.interval = {.thread = record->thread,
                                     .function = sj_import_record_function(record),
                                     .start_ns = record->at_ns,
                                     .number = number},
                        .before = sorter->innermost[record->thread]};
    sorter->innermost[record->thread] = place;
    return SJ_OK;
}

static sj_status close_call(interval_sorter *sorter, uint32_t thread, int64_t at_ns)
{
    const uint32_t place = sorter->innermost[thread];
    open_interval *call = &sorter->open[place - 1];
    sj_interval ended = call->interval;
    ended.end_ns = at_ns;
    sorter->innermost[thread] = call->before;
    call->before = sorter->free_place;
    sorter->free_place = place;
    return add(sorter, &ended);
}

static sj_status add_record(interval_sorter *sorter, const sj_import_record *record,
                            uint64_t number)
{
    if (!sorter->log->threads[record->thread].has_intervals) {
        return SJ_OK;
    }
    switch (sj_import_record_kind(record)) {
    case SJ_IMPORT_ENTER:
        return open_call(sorter, record, number);
    case SJ_IMPORT_INTERVAL:
        return add(sorter, &(sj_interval){.thread = record->thread,
                                          .function = sj_import_record_function(record),
                                          .start_ns = record->at_ns,
                                          .end_ns = record->end_ns,
                                          .number = number});
    default:
        return close_call(sorter, record->thread, record->at_ns);
    }
}

static sj_status read_log(interval_sorter *sorter)
{
    sj_import_record record;
    uint64_t number = 0;
    rewind(sorter->log->records);
    while (fread(&record, sizeof(record), 1, sorter->log->records) == 1) {
        SJ_TRY(add_record(sorter, &record, number++));
    }
    if (number != sorter->log->record_count) {
        return SJ_EIO;
    }
    for (uint32_t i = 0; i < sorter->log->thread_count; i++) {
        while (sorter->innermost[i] != 0) {
            SJ_TRY(close_call(sorter, i, SJ_INTERVAL_OPEN));
        }
    }
    return SJ_OK;
}

/* Makes sure that the run's buffer has a call if the run has one. */
static sj_status fill(interval_sorter *sorter, sorted_run *run)
{
    if (run->at < run->count || run->left == 0) {
        return SJ_OK;
    }
    const size_t count = run->left < MERGE_INTERVALS ? (size_t)run->left : MERGE_INTERVALS;
    if (fseeko(sorter->file, run->next, SEEK_SET) != 0 ||
        fread(run->buffer, sizeof(*run->buffer), count, sorter->file) != count) {
        return SJ_EIO;
    }
    run->next += (off_t)(count * sizeof(*run->buffer));
    run->left -= count;
    run->at = 0;
    run->count = count;
    return SJ_OK;
}

static sj_status merge_runs(interval_sorter *sorter, sj_interval_receiver receive, void *context)
{
    for (size_t i = 0; i < sorter->run_count; i++) {
        sorter->runs[i].buffer = calloc(MERGE_INTERVALS, sizeof(*sorter->runs[i].buffer));
        if (sorter->runs[i].buffer == NULL) {
            return SJ_ENOMEM;
        }
        SJ_TRY(fill(sorter, &sorter->runs[i]));
    }
    while (true) {
        sorted_run *first = NULL;
        for (size_t i = 0; i < sorter->run_count; i++) {
            sorted_run *run = &sorter->runs[i];
            if (run->at < run->count &&
                (first == NULL || compare(&run->buffer[run->at], &first->buffer[first->at]) < 0)) {
                first = run;
            }
        }
        if (first == NULL) {
            return SJ_OK;
        }
        SJ_TRY(receive(context, &first->buffer[first->at++]));
        SJ_TRY(fill(sorter, first));
    }
}

static sj_status sort_all(interval_sorter *sorter, sj_interval_receiver receive, void *context)
{
    SJ_TRY(read_log(sorter));
    if (sorter->file != NULL) {
        SJ_TRY(write_run(sorter));
        if (fflush(sorter->file) != 0) {
            return sj_import_write_failed();
        }
        return merge_runs(sorter, receive, context);
    }
    qsort(sorter->pending, sorter->pending_count, sizeof(*sorter->pending), compare);
    for (size_t i = 0; i < sorter->pending_count; i++) {
        SJ_TRY(receive(context, &sorter->pending[i]));
    }
    return SJ_OK;
}

sj_status sj_interval_sort(const sj_import_log *log, const char *beside,
                           sj_interval_receiver receive, void *context)
{
    interval_sorter sorter = {.log = log, .beside = beside};
    sorter.run_intervals = log->run_intervals != 0 ? log->run_intervals : RUN_INTERVALS;
    sorter.pending = malloc(sorter.run_intervals * sizeof(*sorter.pending));
    sorter.innermost = calloc(log->thread_count + 1, sizeof(*sorter.innermost));
    const bool has_memory = sorter.pending != NULL && sorter.innermost != NULL;
    const sj_status status = has_memory ? sort_all(&sorter, receive, context) : SJ_ENOMEM;
    for (size_t i = 0; i < sorter.run_count; i++) {
        free(sorter.runs[i].buffer);
    }
    if (sorter.file != NULL) {
        fclose(sorter.file);
    }
    free(sorter.runs);
    free(sorter.open);
    free(sorter.innermost);
    free(sorter.pending);
    return status;
}
