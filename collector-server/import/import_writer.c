#include "collector-server/import/import_writer.h"

#include "agent/abi/plan.h"
#include "collector-server/import/call_replay.h"
#include "collector-server/import/session_store.h"
#include "collector-server/store/database.h"
#include "proto/base/byte_buffer.h"
#include "proto/base/units.h"
#include "proto/callgraph/path_histogram.h"
#include "proto/wire/function_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FUNCTION_BYTES = 16, /* distance between the made-up offsets of two functions */
    PART_BYTES = 4 * 1024 * 1024,
    ENTRY_OVERHEAD_BYTES = 32,
    BUILD_ID_BYTES = 20,
    PROFILE_VERSION = 1,
    TAG_BYTES = 4096
};

/* A tick is one ns. A probe's record has 48 bits for the ticks. */
#define BASE_TICKS UINT64_C(1)
#define MOST_NS (INT64_C(1) << 46)

typedef struct import_writer {
    sj_import_log *log;
    const sj_import_origin *origin;
    const char *path;    /* the database */
    uint64_t started_ns; /* real time of the import */
    sj_session_store target;
    uint32_t *functions; /* by id in the log less 1: the id in the session */
    uint32_t *processes; /* by thread: number of its process */
    sj_replay_sums sums;
    sj_error *error;
} import_writer;

static char *borrow(const char *text)
{
    return (char *)(uintptr_t)(text != NULL ? text : "");
}

static ProtobufCBinaryData session_bytes(const import_writer *writer)
{
    return (ProtobufCBinaryData){.len = sizeof(writer->origin->session.bytes),
                                 .data = (uint8_t *)(uintptr_t)writer->origin->session.bytes};
}

static uint64_t end_ticks(const import_writer *writer)
{
    const sj_import_log *log = writer->log;
    return log->record_count != 0 ? BASE_TICKS + ((uint64_t)log->last_ns - (uint64_t)log->first_ns)
                                  : BASE_TICKS + log->weight;
}

static sj_status put_session(import_writer *writer)
{
    static uint8_t device[] = "sojourn import:";
    char format[64];
    char file[TAG_BYTES];
    char *tags[] = {format, file};
    (void)snprintf(format, sizeof(format), "imported=%s", writer->origin->format);
    (void)snprintf(file, sizeof(file), "imported_from=%s", writer->origin->file);
    Sojourn__Hello hello = SOJOURN__HELLO__INIT;
    hello.device_id = (ProtobufCBinaryData){.len = sizeof(device), .data = device};
    hello.device_name = borrow("imported files");
    SJ_TRY(sj_session_store_put(&writer->target, SJ_FRAME_HELLO, &hello.base, (sj_slice){0}));
    Sojourn__Session session = SOJOURN__SESSION__INIT;
    session.session_id = session_bytes(writer);
    session.device_id = hello.device_id;
    session.name = borrow(writer->origin->name);
    session.command = borrow(writer->origin->file);
    session.mode = borrow(writer->log->record_count != 0 ? "trace" : "profile");
    session.started_realtime_ns = writer->started_ns;
    session.started_ticks = BASE_TICKS;
    session.tick_ns_numerator = session.tick_ns_denominator = 1;
    session.clock_step = 1;
    session.clock_name = borrow("imported");
    session.tags = tags;
    session.n_tags = 2;
    return sj_session_store_put(&writer->target, SJ_FRAME_SESSION, &session.base, (sj_slice){0});
}

static sj_status put_part(import_writer *writer, Sojourn__Module *module,
                          const sj_function_entry *entries)
{
    const size_t bound = sj_function_table_bound(entries, module->part_count);
    uint8_t *raw = malloc(bound);
    size_t size = 0;
    sj_status status =
        raw == NULL ? SJ_ENOMEM
                    : sj_function_table_write(entries, module->part_count, raw, bound, &size);
    if (status == SJ_OK) {
        module->raw_bytes = (uint32_t)size;
        status = sj_session_store_put_packed(&writer->target, SJ_FRAME_MODULE, &module->base,
                                             (sj_slice){.data = raw, .size = size});
    }
    free(raw);
    return status;
}

/* Sends the functions of a module, cut into parts that fit into a frame. */
static sj_status put_functions(import_writer *writer, Sojourn__Module *module,
                               const sj_function_entry *entries)
{
    for (uint32_t first = 0; first < module->function_count; first += module->part_count) {
        size_t bytes = 0;
        uint32_t end = first;
        while (end < module->function_count && (bytes < PART_BYTES || end == first)) {
            bytes += strlen(entries[end++].name) + ENTRY_OVERHEAD_BYTES;
        }
        module->part_first = first;
        module->part_count = end - first;
        SJ_TRY(put_part(writer, module, entries + first));
    }
    return SJ_OK;
}

/* Functions have no addresses, so their offsets are made up from their order in the module.
 * `members` are the indices of the functions of module number `number` in the log. */
static sj_status put_module(import_writer *writer, uint32_t number, const uint32_t *members,
                            uint32_t count, uint32_t *next_function)
{
    sj_import_log *log = writer->log;
    sj_function_entry *entries = calloc((size_t)count + 1, sizeof(*entries));
    if (entries == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (sj_function_entry){.offset = (uint64_t)(i + 1) * FUNCTION_BYTES,
                                         .size_bytes = FUNCTION_BYTES,
                                         .technique = SJ_TECHNIQUE_RUNTIME,
                                         .source = SJ_SYMBOL_RUNTIME,
                                         .name = log->functions[members[i]].name};
        writer->functions[members[i]] = *next_function + i;
    }
    uint8_t build_id[BUILD_ID_BYTES] = {0};
    memcpy(build_id, writer->origin->session.bytes, sizeof(writer->origin->session.bytes));
    memcpy(build_id + BUILD_ID_BYTES - sizeof(number), &number, sizeof(number));
    Sojourn__Module module = SOJOURN__MODULE__INIT;
    module.session_id = session_bytes(writer);
    module.module = number + 1;
    module.build_id = (ProtobufCBinaryData){.len = sizeof(build_id), .data = build_id};
    module.path = log->modules[number];
    module.first_function = *next_function;
    module.function_count = module.hooked_count = count;
    *next_function += count;
    const sj_status status = count != 0 ? put_functions(writer, &module, entries) : SJ_OK;
    free(entries);
    return status;
}

/* Sorts the functions by module, in their order in the log. `ends` gets, for each module, the end
 * of its functions in `members`. */
static void sort_functions(const sj_import_log *log, uint32_t *members, uint32_t *ends)
{
    for (size_t i = 0; i < log->function_count; i++) {
        ends[log->functions[i].module]++;
    }
    uint32_t before = 0;
    for (size_t i = 0; i < log->module_count; i++) {
        const uint32_t count = ends[i];
        ends[i] = before;
        before += count;
    }
    for (size_t i = 0; i < log->function_count; i++) {
        members[ends[log->functions[i].module]++] = (uint32_t)i;
    }
}

static sj_status put_modules(import_writer *writer)
{
    const sj_import_log *log = writer->log;
    for (size_t i = 0; i < log->function_count; i++) {
        if (log->functions[i].name == NULL) {
            return sj_fail(writer->error, SJ_ECORRUPT,
                           "%s: it uses a function that it does not name", writer->origin->file);
        }
    }
    uint32_t *members = calloc(log->function_count + 1, sizeof(*members));
    uint32_t *ends = calloc(log->module_count + 1, sizeof(*ends));
    sj_status status = members != NULL && ends != NULL ? SJ_OK : SJ_ENOMEM;
    if (status == SJ_OK) {
        sort_functions(log, members, ends);
    }
    uint32_t next_function = 1;
    uint32_t first = 0;
    for (uint32_t i = 0; i < log->module_count && status == SJ_OK; i++) {
        status = put_module(writer, i, members + first, ends[i] - first, &next_function);
        first = ends[i];
    }
    free(members);
    free(ends);
    return status;
}

/* Returns a process or thread id as the kernel has it, or 0 if the file's number is not one. */
static uint32_t kernel_id(int64_t id)
{
    return id > 0 && id <= UINT32_MAX ? (uint32_t)id : 0;
}

static sj_status put_processes(import_writer *writer)
{
    for (size_t i = 0; i < writer->log->process_count; i++) {
        const sj_import_process *process = &writer->log->processes[i];
        Sojourn__Process message = SOJOURN__PROCESS__INIT;
        message.session_id = session_bytes(writer);
        message.process = i + 1;
        message.pid = kernel_id(process->pid);
        message.executable = borrow(process->name);
        message.started_ticks = BASE_TICKS;
        message.ended_ticks = end_ticks(writer);
        SJ_TRY(
            sj_session_store_put(&writer->target, SJ_FRAME_PROCESS, &message.base, (sj_slice){0}));
        for (size_t k = 0; k < writer->log->thread_count; k++) {
            if (writer->log->threads[k].pid == process->pid) {
                writer->processes[k] = (uint32_t)(i + 1);
            }
        }
    }
    return SJ_OK;
}

static sj_status put_thread(void *context, uint32_t thread, const uint32_t *streams, size_t count)
{
    import_writer *writer = context;
    const sj_import_thread *known = &writer->log->threads[thread];
    char name[48] = "";
    if (known->name == NULL && kernel_id(known->tid) == 0) {
        (void)snprintf(name, sizeof(name), "thread %lld", (long long)known->tid);
    }
    Sojourn__Thread message = SOJOURN__THREAD__INIT;
    message.session_id = session_bytes(writer);
    message.process = writer->processes[thread];
    message.thread = (uint64_t)thread + 1;
    message.tid = kernel_id(known->tid);
    message.name = known->name != NULL ? known->name : name;
    message.started_ticks = BASE_TICKS;
    message.ended_ticks = end_ticks(writer);
    message.is_main = known->tid == known->pid;
    message.stream = (uint32_t *)(uintptr_t)streams;
    message.n_stream = count;
    return sj_session_store_put(&writer->target, SJ_FRAME_THREAD, &message.base, (sj_slice){0});
}

static sj_status put_block(void *context, sj_slice bytes)
{
    import_writer *writer = context;
    return sj_session_store_put(&writer->target, SJ_FRAME_BLOCK, NULL, bytes);
}

static sj_status put_calls(import_writer *writer)
{
    const sj_import_log *log = writer->log;
    if (log->last_ns < log->first_ns ||
        (uint64_t)log->last_ns - (uint64_t)log->first_ns >= (uint64_t)MOST_NS) {
        return sj_fail(writer->error, SJ_ELIMIT, "%s: its calls cover more than 19 hours",
                       writer->origin->file);
    }
    const sj_replay_options options = {.log = log,
                                       .beside = writer->path,
                                       .session = writer->origin->session,
                                       .base_ticks = BASE_TICKS,
                                       .functions = writer->functions};
    const sj_replay_sink sink = {.context = writer, .streams = put_thread, .block = put_block};
    const sj_status status = sj_call_replay(&options, &sink, &writer->sums, writer->error);
    if (status == SJ_ELIMIT) {
        const sj_error limit = *writer->error;
        return sj_fail(writer->error, status, "%s: %s", writer->origin->file, limit.text);
    }
    return status;
}

/* Returns the weight of each path with all below it, as the log says or as the sum. Children have
 * larger numbers than parents. */
static uint64_t *sum_totals(const sj_import_log *log)
{
    uint64_t *totals = calloc(log->path_count + 1, sizeof(*totals));
    for (size_t i = log->path_count; totals != NULL && i > 0; i--) {
        const sj_import_path *path = &log->paths[i - 1];
        totals[i] += path->weight;
        if (path->total != 0) {
            totals[i] = path->total > path->weight ? path->total : path->weight;
        }
        if (log->paths[i - 1].parent != 0) {
            totals[log->paths[i - 1].parent] += totals[i];
        }
    }
    return totals;
}

static sj_status write_path(sj_byte_buffer *buffer, const import_writer *writer,
                            const sj_import_path *path, uint64_t total)
{
    sj_path_histogram histogram = {0};
    const uint64_t mean = path->samples != 0 ? path->weight / path->samples : 0;
    const sj_status status =
        path->samples != 0 ? sj_path_histogram_add(&histogram, mean, path->samples) : SJ_OK;
    const uint64_t numbers[] = {path->parent,
                                writer->functions[path->function - 1],
                                path->samples,
                                total,
                                path->weight,
                                path->least,
                                path->most,
                                0,
                                0};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sj_byte_buffer_put_varint(buffer, numbers[i]);
    }
    const size_t bound = sj_path_histogram_encoded_bound(&histogram);
    uint8_t *encoded = malloc(bound + 1);
    if (encoded != NULL && status == SJ_OK) {
        const size_t size = sj_path_histogram_encode(&histogram, encoded, bound);
        sj_byte_buffer_put_varint(buffer, size);
        sj_byte_buffer_put(buffer, encoded, size);
    }
    const bool failed = encoded == NULL;
    free(encoded);
    sj_path_histogram_deinit(&histogram);
    return failed ? SJ_ENOMEM : status;
}

static sj_status put_samples(import_writer *writer)
{
    const sj_import_log *log = writer->log;
    sj_byte_buffer buffer = {0};
    uint64_t *totals = sum_totals(log);
    sj_status status = totals != NULL ? SJ_OK : SJ_ENOMEM;
    sj_byte_buffer_put_varint(&buffer, PROFILE_VERSION);
    sj_byte_buffer_put_varint(&buffer, log->path_count);
    for (size_t i = 0; i < log->path_count && status == SJ_OK; i++) {
        status = write_path(&buffer, writer, &log->paths[i], totals[i + 1]);
    }
    free(totals);
    if (buffer.failed || buffer.size > UINT32_MAX) {
        status = SJ_ENOMEM;
    }
    if (status == SJ_OK) {
        Sojourn__Profile profile = SOJOURN__PROFILE__INIT;
        profile.session_id = session_bytes(writer);
        profile.profile = 1;
        profile.first_ticks = BASE_TICKS;
        profile.last_ticks = end_ticks(writer);
        profile.calls = log->samples;
        profile.events = 2 * log->samples;
        profile.raw_bytes = (uint32_t)buffer.size;
        status = sj_session_store_put_packed(&writer->target, SJ_FRAME_PROFILE, &profile.base,
                                             (sj_slice){.data = buffer.bytes, .size = buffer.size});
    }
    sj_byte_buffer_deinit(&buffer);
    return status;
}

static sj_status put_end(import_writer *writer)
{
    Sojourn__SessionEnd end = SOJOURN__SESSION_END__INIT;
    end.session_id = session_bytes(writer);
    end.how = borrow("completed");
    end.ended_ticks = end_ticks(writer);
    end.ended_realtime_ns = writer->started_ns + (end_ticks(writer) - BASE_TICKS);
    end.records = writer->sums.records;
    end.calls = writer->log->record_count != 0 ? writer->sums.calls : writer->log->samples;
    end.blocks = writer->sums.blocks;
    SJ_TRY(sj_session_store_put(&writer->target, SJ_FRAME_SESSION_END, &end.base, (sj_slice){0}));
    return sj_session_store_commit(&writer->target);
}

static void note_losses(sj_import_log *log)
{
    if (log->has_more_modules) {
        sj_import_log_note(log,
                           "the file has more than %d modules: functions of the others are in the "
                           "module \"" SJ_IMPORT_MODULE "\"",
                           SJ_IMPORT_MOST_MODULES);
    }
    if (log->unmatched_exits != 0) {
        sj_import_log_note(log, "%s had no entry and could not be imported",
                           SJ_COUNTED(log->unmatched_exits, "exit"));
    }
    if (log->late_records != 0) {
        sj_import_log_note(
            log,
            "%s had an earlier time than the record before on the same thread, and got that time",
            SJ_COUNTED(log->late_records, "record"));
    }
}

static sj_status write_session(import_writer *writer)
{
    SJ_TRY(put_session(writer));
    SJ_TRY(put_modules(writer));
    SJ_TRY(put_processes(writer));
    SJ_TRY(writer->log->record_count != 0 ? put_calls(writer) : put_samples(writer));
    return put_end(writer);
}

static sj_status check_log(const import_writer *writer)
{
    const sj_import_log *log = writer->log;
    if (fflush(log->records) != 0 || ferror(log->records) != 0) {
        return sj_fail(writer->error, sj_import_write_failed(),
                       "cannot write a temporary file for %s: %s", writer->origin->file,
                       strerror(errno));
    }
    if (log->record_count != 0 && log->samples != 0) {
        return sj_fail(writer->error, SJ_EUNSUPPORTED,
                       "%s: it has calls and samples; only one of both can be imported",
                       writer->origin->file);
    }
    return log->record_count != 0 || log->samples != 0
               ? SJ_OK
               : sj_fail(writer->error, SJ_ECORRUPT, "%s: it has no calls", writer->origin->file);
}

/* Adds the notes, which no frame can carry. */
static sj_status add_notes(const import_writer *writer, const char *path)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *insert = NULL;
    SJ_TRY(sj_database_open(path, SJ_DATABASE_WRITE, &database, writer->error));
    int result = sqlite3_prepare_v2(database,
                                    "INSERT INTO annotations(session_id, author, note, "
                                    "created_realtime_ns) SELECT session_id, ?1, ?2, "
                                    "unixepoch() * 1000000000 FROM sessions",
                                    -1, &insert, NULL);
    for (size_t i = 0; i < writer->log->note_count && result == SQLITE_OK; i++) {
        sqlite3_bind_text(insert, 1, SJ_IMPORT_AUTHOR, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 2, writer->log->notes[i], -1, SQLITE_STATIC);
        result = sqlite3_step(insert) == SQLITE_DONE ? sqlite3_reset(insert) : SQLITE_ERROR;
    }
    const sj_status status =
        result == SQLITE_OK
            ? SJ_OK
            : sj_fail(writer->error, SJ_EIO, "cannot add a note: %s", sqlite3_errmsg(database));
    sqlite3_finalize(insert);
    sqlite3_close(database);
    return status;
}

sj_status sj_import_write(sj_import_log *log, const sj_import_origin *origin, const char *path,
                          sj_import_sums *sums, sj_error *error)
{
    import_writer writer = {.log = log, .origin = origin, .path = path, .error = error};
    *error = (sj_error){0};
    SJ_TRY(check_log(&writer));
    note_losses(log);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    writer.started_ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
    writer.functions = calloc(log->function_count + 1, sizeof(*writer.functions));
    writer.processes = calloc(log->thread_count + 1, sizeof(*writer.processes));
    sj_status status = writer.functions != NULL && writer.processes != NULL ? SJ_OK : SJ_ENOMEM;
    if (status == SJ_OK) {
        status = sj_session_store_open(&writer.target, path, error);
    }
    if (status == SJ_OK) {
        status = write_session(&writer);
    }
    sj_session_store_close(&writer.target);
    if (status == SJ_OK) {
        status = add_notes(&writer, path);
    }
    free(writer.functions);
    free(writer.processes);
    *sums = (sj_import_sums){.calls = writer.sums.calls,
                             .samples = log->samples,
                             .threads = log->thread_count,
                             .functions = log->function_count};
    return status == SJ_OK || error->text[0] != '\0'
               ? status
               : sj_fail(error, status, "cannot import %s: %s", origin->file,
                         sj_status_text(status));
}
