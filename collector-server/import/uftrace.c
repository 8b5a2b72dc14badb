/* uftrace: a data folder of `uftrace record`. A thread has a file TID.dat of records of 16 bytes:
 * the time, and a word with the type (2 bits), a flag for more data, a magic number (3 bits), the
 * depth (10 bits) and the address (48 bits). task.txt names the
 * threads, and sid-*.map the modules at each address.
 *
 * Design notes. Calls that longjmp left have no exits, and records may be lost. The depth of the
 * next record shows it: calls that are as deep, or deeper, have ended. */
#include "collector-server/import/uftrace.h"

#include "collector-server/import/importer.h"
#include "proto/base/array.h"
#include "proto/base/units.h"

#include <limits.h>
#include <stdlib.h>

enum {
    INFO_MAGIC_BYTES = 8,
    INFO_VERSION = 4,
    RECORD_BYTES = 16,
    RECORD_MAGIC = 5,
    TYPE_ENTRY = 0,
    TYPE_EXIT = 1,
    TYPE_LOST = 2,
    MORE_BIT = 2,
    MAGIC_BIT = 3,
    DEPTH_BIT = 6,
    MOST_DEPTH = 1023,
    ADDRESS_BIT = 16,
    ENDIAN_AT = 14,
    CLASS_AT = 15
};

typedef struct open_call {
    uint64_t address;
    unsigned depth; /* in its record */
} open_call;

/* The records of a thread. */
typedef struct task_records {
    sj_uftrace *trace;
    const sj_uftrace_task *task;
    uint32_t thread;
    open_call *open; /* outermost first */
    size_t count, capacity;
} task_records;

static sj_status check_info(sj_uftrace *trace)
{
    char path[PATH_MAX];
    FILE *file = NULL;
    SJ_TRY(sj_uftrace_open(trace, "info", &file, path));
    const sj_slice head = sj_source_head(trace->source);
    sj_status status = SJ_OK;
    if (head.size < RECORD_BYTES || memcmp(head.data, "Ftrace!", INFO_MAGIC_BYTES) != 0) {
        status = sj_source_fail(trace->source, SJ_ECORRUPT, 0, "not the info file of uftrace");
    } else if (head.data[INFO_MAGIC_BYTES] != INFO_VERSION || head.data[ENDIAN_AT] != 1 ||
               head.data[CLASS_AT] != 2) {
        status = sj_source_fail(trace->source, SJ_EVERSION, INFO_MAGIC_BYTES,
                                "only version 4 of 64-bit little-endian machines can be read");
    }
    const sj_status closed = sj_uftrace_close(trace, file);
    return status != SJ_OK ? status : closed;
}

static bool read_record(sj_source *source, uint8_t record[RECORD_BYTES], size_t *size)
{
    for (*size = 0; *size < RECORD_BYTES; ++*size) {
        const int byte = sj_source_get(source);
        if (byte == SJ_SOURCE_END) {
            return false;
        }
        record[*size] = (uint8_t)byte;
    }
    return true;
}

/* Ends the open calls that are at least that deep. They have no exits. */
static sj_status end_deep(task_records *records, unsigned depth, int64_t at_ns)
{
    while (records->count != 0 && records->open[records->count - 1].depth >= depth) {
        records->count--;
        SJ_TRY(sj_import_log_leave(records->trace->log, records->thread, at_ns, true));
    }
    return SJ_OK;
}

static sj_status read_entry(task_records *records, unsigned depth, uint64_t address, int64_t at_ns)
{
    sj_uftrace *trace = records->trace;
    uint32_t function;
    SJ_TRY(end_deep(records, depth, at_ns));
    SJ_TRY(sj_array_reserve(&records->open, &records->capacity, records->count, 1,
                            sizeof(*records->open)));
    records->open[records->count++] = (open_call){.address = address, .depth = depth};
    SJ_TRY(sj_uftrace_find(trace, records->task, (uint64_t)at_ns, address, &function));
    return sj_import_log_enter(trace->log, records->thread, function, at_ns);
}

/* An exit of another function than that of the call is the second return of setjmp or fork. */
static sj_status read_exit(task_records *records, unsigned depth, uint64_t address, int64_t at_ns)
{
    SJ_TRY(end_deep(records, depth + 1, at_ns));
    const open_call *call = records->count != 0 ? &records->open[records->count - 1] : NULL;
    if (call == NULL || call->depth != depth || call->address != address) {
        records->trace->log->unmatched_exits++;
        return end_deep(records, depth, at_ns);
    }
    records->count--;
    return sj_import_log_leave(records->trace->log, records->thread, at_ns, false);
}

static sj_status read_call(task_records *records, const uint8_t record[RECORD_BYTES],
                           uint64_t offset)
{
    sj_uftrace *trace = records->trace;
    sj_reader reader = sj_reader_of(record, RECORD_BYTES);
    const uint64_t at_ns = sj_read_u64(&reader);
    const uint64_t word = sj_read_u64(&reader);
    const unsigned type = word & 3;
    const unsigned depth = word >> DEPTH_BIT & MOST_DEPTH;
    if ((word >> MAGIC_BIT & 7) != RECORD_MAGIC || at_ns > INT64_MAX) {
        return sj_source_fail(trace->source, SJ_ECORRUPT, offset, "this is not a record");
    }
    if ((word >> MORE_BIT & 1) != 0) {
        return sj_source_fail(trace->source, SJ_EUNSUPPORTED, offset,
                              "the record has arguments or other data, which cannot be read; "
                              "record without --argument, --retval, --auto-args and --event");
    }
    if (type == TYPE_EXIT) {
        return read_exit(records, depth, word >> ADDRESS_BIT, (int64_t)at_ns);
    }
    if (type == TYPE_ENTRY) {
        return read_entry(records, depth, word >> ADDRESS_BIT, (int64_t)at_ns);
    }
    trace->lost += type == TYPE_LOST ? word >> ADDRESS_BIT : 0;
    trace->left_out_events += type != TYPE_LOST ? 1 : 0;
    return SJ_OK;
}

static sj_status read_all_records(task_records *records)
{
    uint8_t record[RECORD_BYTES];
    size_t size;
    uint64_t offset = 0;
    while (read_record(records->trace->source, record, &size)) {
        SJ_TRY(read_call(records, record, offset));
        offset += RECORD_BYTES;
    }
    return size == 0 ? SJ_OK
                     : sj_source_fail(records->trace->source, SJ_ECORRUPT, offset,
                                      "the file ends in a record: it is cut");
}

static sj_status read_records(sj_uftrace *trace, const sj_uftrace_task *task)
{
    task_records records = {.trace = trace, .task = task};
    SJ_TRY(sj_import_log_thread(trace->log, task->pid, task->tid, &records.thread));
    const sj_status status = read_all_records(&records);
    free(records.open);
    return status;
}

static sj_status read_task(sj_uftrace *trace, const sj_uftrace_task *task)
{
    char name[32];
    char path[PATH_MAX];
    FILE *file = NULL;
    (void)snprintf(name, sizeof(name), "%lld.dat", (long long)task->tid);
    const sj_status opened = sj_uftrace_open(trace, name, &file, path);
    if (opened == SJ_ENOTFOUND) { /* the thread has called nothing */
        *trace->error = (sj_error){0};
        return SJ_OK;
    }
    SJ_TRY(opened);
    const sj_status status = read_records(trace, task);
    const sj_status closed = sj_uftrace_close(trace, file);
    return status != SJ_OK ? status : closed;
}

static sj_status read_all(sj_uftrace *trace)
{
    SJ_TRY(check_info(trace));
    SJ_TRY(sj_uftrace_read_tasks(trace));
    for (size_t i = 0; i < trace->task_count; i++) {
        bool is_known = false;
        for (size_t k = 0; k < i; k++) {
            is_known = is_known || trace->tasks[k].tid == trace->tasks[i].tid;
        }
        if (!is_known) {
            SJ_TRY(read_task(trace, &trace->tasks[i]));
        }
    }
    for (size_t i = 0; i < trace->session_count; i++) {
        SJ_TRY(sj_import_log_name_process(trace->log, trace->sessions[i].pid,
                                          sj_import_text(trace->sessions[i].program)));
    }
    return SJ_OK;
}

static sj_status read_uftrace(const char *folder, sj_import_log *log, sj_session_id *session,
                              sj_error *error)
{
    sj_uftrace trace = {.folder = folder, .log = log, .error = error};
    trace.source = malloc(sizeof(*trace.source));
    const sj_status status = trace.source != NULL ? read_all(&trace) : SJ_ENOMEM;
    memcpy(session->bytes, trace.hash, sizeof(session->bytes));
    if (trace.lost != 0) {
        sj_import_log_note(log, "uftrace lost %s", SJ_COUNTED(trace.lost, "record"));
    }
    if (trace.left_out_events != 0) {
        sj_import_log_note(log, "%s could not be imported, because only calls can",
                           SJ_COUNTED(trace.left_out_events, "event"));
    }
    sj_import_log_note(log, "scheduling, kernel functions and libraries that were loaded later are "
                            "left out; times count from the first call");
    sj_uftrace_deinit(&trace);
    return status;
}

const sj_importer sj_importer_uftrace = {
    .name = "uftrace",
    .summary = "the data folder of uftrace record",
    .read_folder = read_uftrace,
};
