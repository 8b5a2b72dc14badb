#include "collector-server/import/import_log.h"

#include "proto/base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KIND_BIT = 30, BUFFER_BYTES = 256 * 1024 };

FILE *sj_import_temporary(const char *beside)
{
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof(folder), "%s", beside) >= (int)sizeof(folder)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    char name[PATH_MAX];
    if (snprintf(name, sizeof(name), "%s/.sojourn-import-XXXXXX", dirname(folder)) >=
        (int)sizeof(name)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    const int descriptor = mkostemp(name, O_CLOEXEC);
    if (descriptor < 0) {
        return NULL;
    }
    unlink(name);
    FILE *file = fdopen(descriptor, "w+b");
    if (file == NULL) {
        close(descriptor);
    }
    return file;
}

sj_status sj_import_write_failed(void)
{
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? SJ_EFULL : SJ_EIO;
}

sj_status sj_import_log_init(sj_import_log *log, const char *beside, sj_error *error)
{
    *log = (sj_import_log){.records = sj_import_temporary(beside)};
    if (log->records == NULL) {
        return sj_fail(error, SJ_EIO, "cannot create a temporary file beside %s: %s", beside,
                       strerror(errno));
    }
    (void)setvbuf(log->records, NULL, _IOFBF, BUFFER_BYTES);
    return SJ_OK;
}

void sj_import_log_deinit(sj_import_log *log)
{
    if (log->records != NULL) {
        fclose(log->records);
    }
    for (size_t i = 0; i < log->function_count; i++) {
        free(log->functions[i].name);
    }
    for (size_t i = 0; i < log->module_count; i++) {
        free(log->modules[i]);
    }
    for (size_t i = 0; i < log->thread_count; i++) {
        free(log->threads[i].name);
    }
    for (size_t i = 0; i < log->process_count; i++) {
        free(log->processes[i].name);
    }
    free(log->functions);
    free(log->modules);
    free(log->threads);
    free(log->processes);
    free(log->paths);
    sj_hash_map_deinit(&log->by_name);
    sj_hash_map_deinit(&log->by_module);
    sj_hash_map_deinit(&log->by_thread);
    sj_hash_map_deinit(&log->by_pid);
    sj_hash_map_deinit(&log->by_path);
    *log = (sj_import_log){0};
}

void sj_import_log_note(sj_import_log *log, const char *format, ...)
{
    if (log->note_count < SJ_IMPORT_NOTES) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(log->notes[log->note_count++], sizeof(log->notes[0]), format, arguments);
        va_end(arguments);
    }
}

static uint64_t hash_text(sj_slice text, uint64_t seed)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;
    for (size_t i = 0; i < text.size; i++) {
        hash = (hash ^ text.data[i]) * UINT64_C(0x100000001b3);
    }
    return hash != 0 ? hash : 1;
}

/* Copies a text. A NUL byte becomes the two characters "\0". */
static sj_status dup_text(sj_slice text, char **copy)
{
    size_t nuls = 0;
    for (size_t i = 0; i < text.size; i++) {
        nuls += text.data[i] == 0;
    }
    if (text.size > SJ_IMPORT_TEXT_BYTES) {
        return SJ_ELIMIT;
    }
    char *made = malloc(text.size + nuls + 1);
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == 0) {
            made[size++] = '\\';
            made[size++] = '0';
        } else {
            made[size++] = (char)text.data[i];
        }
    }
    made[size] = '\0';
    *copy = made;
    return SJ_OK;
}

/* Finds a known module. Modules of the same hash have turns 1, 2, ... in the map. For an unknown
 * module, `*turn` is the first unused turn of its hash. */
static bool is_known(const sj_import_log *log, const char *name, uint64_t hash, uint32_t *turn,
                     uint32_t *module)
{
    const sj_hash_entry *known;
    for (*turn = 1; (known = sj_hash_map_find(&log->by_module, hash, *turn)) != NULL; ++*turn) {
        if (strcmp(log->modules[known->first], name) == 0) {
            *module = known->first;
            return true;
        }
    }
    return false;
}

static sj_status add_module(sj_import_log *log, char *name, uint64_t hash, uint32_t turn,
                            uint32_t *module)
{
    *module = (uint32_t)log->module_count;
    SJ_TRY(sj_array_reserve(&log->modules, &log->module_capacity, log->module_count, 1,
                            sizeof(*log->modules)));
    SJ_TRY(sj_hash_map_put(&log->by_module,
                           &(sj_hash_entry){.key = hash, .sub = turn, .first = *module}));
    log->modules[log->module_count++] = name;
    return SJ_OK;
}

static sj_status find_module(sj_import_log *log, sj_slice name, uint32_t *module)
{
    uint32_t turn;
    char *copy;
    SJ_TRY(dup_text(name.size != 0 ? name : sj_import_text(SJ_IMPORT_MODULE), &copy));
    const uint64_t hash = hash_text(sj_import_text(copy), 0);
    if (is_known(log, copy, hash, &turn, module)) {
        free(copy);
        return SJ_OK;
    }
    if (name.size != 0 && log->module_count >= SJ_IMPORT_MOST_MODULES) {
        free(copy);
        log->has_more_modules = true;
        return find_module(log, (sj_slice){0}, module);
    }
    const sj_status status = add_module(log, copy, hash, turn, module);
    if (status != SJ_OK) {
        free(copy);
    }
    return status;
}

sj_status sj_import_log_add_function(sj_import_log *log, uint32_t *function)
{
    if (log->function_count >= SJ_IMPORT_MOST_FUNCTIONS) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_array_reserve(&log->functions, &log->function_capacity, log->function_count, 1,
                            sizeof(*log->functions)));
    log->functions[log->function_count++] = (sj_import_function){0};
    *function = (uint32_t)log->function_count;
    return SJ_OK;
}

sj_status sj_import_log_name_function(sj_import_log *log, uint32_t function, sj_slice name,
                                      sj_slice module)
{
    sj_import_function *one = &log->functions[function - 1];
    char *copy;
    SJ_TRY(find_module(log, module, &one->module));
    SJ_TRY(dup_text(name, &copy));
    free(one->name);
    one->name = copy;
    return SJ_OK;
}

/* True if a function has that name, as dup_text writes it. */
static bool has_name(const sj_import_function *function, sj_slice name)
{
    const size_t size = strlen(function->name);
    if (size == name.size) {
        return memcmp(function->name, name.data, size) == 0;
    }
    char *copy = NULL;
    const bool same = memchr(name.data, 0, name.size) != NULL && dup_text(name, &copy) == SJ_OK &&
                      strcmp(copy, function->name) == 0;
    free(copy);
    return same;
}

sj_status sj_import_log_function(sj_import_log *log, sj_slice name, sj_slice module,
                                 uint32_t *function)
{
    uint32_t module_index;
    SJ_TRY(find_module(log, module, &module_index));
    const uint64_t hash = hash_text(name, module_index + 1);
    uint32_t turn = 1;
    const sj_hash_entry *known;
    while ((known = sj_hash_map_find(&log->by_name, hash, turn)) != NULL) {
        const sj_import_function *one = &log->functions[known->first - 1];
        if (one->module == module_index && has_name(one, name)) {
            *function = known->first;
            return SJ_OK;
        }
        turn++;
    }
    char *copy;
    SJ_TRY(dup_text(name, &copy));
    sj_status status = sj_import_log_add_function(log, function);
    if (status == SJ_OK) {
        log->functions[*function - 1] = (sj_import_function){.name = copy, .module = module_index};
        return sj_hash_map_put(&log->by_name,
                               &(sj_hash_entry){.key = hash, .sub = turn, .first = *function});
    }
    free(copy);
    return status;
}

static sj_status find_process(sj_import_log *log, int64_t pid, uint32_t *process)
{
    const sj_hash_entry *known = sj_hash_map_find(&log->by_pid, (uint64_t)pid, 1);
    if (known != NULL) {
        *process = known->first;
        return SJ_OK;
    }
    if (log->process_count >= SJ_IMPORT_MOST_THREADS) {
        return SJ_ELIMIT;
    }
    *process = (uint32_t)log->process_count;
    SJ_TRY(sj_array_reserve(&log->processes, &log->process_capacity, log->process_count, 1,
                            sizeof(*log->processes)));
    log->processes[log->process_count++] = (sj_import_process){.pid = pid};
    return sj_hash_map_put(&log->by_pid,
                           &(sj_hash_entry){.key = (uint64_t)pid, .sub = 1, .first = *process});
}

sj_status sj_import_log_thread(sj_import_log *log, int64_t pid, int64_t tid, uint32_t *thread)
{
    uint32_t process;
    SJ_TRY(find_process(log, pid, &process));
    const sj_hash_entry *known = sj_hash_map_find(&log->by_thread, (uint64_t)tid, process + 1);
    if (known != NULL) {
        *thread = known->first;
        return SJ_OK;
    }
    if (log->thread_count >= SJ_IMPORT_MOST_THREADS) {
        return SJ_ELIMIT;
    }
    *thread = (uint32_t)log->thread_count;
    SJ_TRY(sj_array_reserve(&log->threads, &log->thread_capacity, log->thread_count, 1,
                            sizeof(*log->threads)));
    log->threads[log->thread_count++] = (sj_import_thread){.pid = pid, .tid = tid};
    return sj_hash_map_put(
        &log->by_thread,
        &(sj_hash_entry){.key = (uint64_t)tid, .sub = process + 1, .first = *thread});
}

static sj_status rename_to(char **name, sj_slice text)
{
    char *copy;
    SJ_TRY(dup_text(text, &copy));
    free(*name);
    *name = copy;
    return SJ_OK;
}

sj_status sj_import_log_name_thread(sj_import_log *log, uint32_t thread, sj_slice name)
{
    return rename_to(&log->threads[thread].name, name);
}

sj_status sj_import_log_name_process(sj_import_log *log, int64_t pid, sj_slice name)
{
    uint32_t process;
    SJ_TRY(find_process(log, pid, &process));
    return rename_to(&log->processes[process].name, name);
}

static sj_status put_record(sj_import_log *log, uint32_t thread, sj_import_kind kind,
                            uint32_t function, int64_t at_ns, int64_t end_ns)
{
    const sj_import_record record = {.thread = thread,
                                     .kind_and_function = (uint32_t)kind << KIND_BIT | function,
                                     .at_ns = at_ns,
                                     .end_ns = end_ns};
    if (log->record_count == 0 || at_ns < log->first_ns) {
        log->first_ns = at_ns;
    }
    if (log->record_count == 0 || end_ns > log->last_ns) {
        log->last_ns = end_ns;
    }
    log->record_count++;
    return fwrite(&record, sizeof(record), 1, log->records) == 1 ? SJ_OK : sj_import_write_failed();
}

/* Returns the time of an event, not earlier than the event before it on its thread. */
static int64_t in_order(sj_import_log *log, sj_import_thread *thread, int64_t at_ns)
{
    if (thread->has_events && at_ns < thread->last_ns) {
        log->late_records++;
        return thread->last_ns;
    }
    thread->has_events = true;
    thread->last_ns = at_ns;
    return at_ns;
}

sj_status sj_import_log_enter(sj_import_log *log, uint32_t thread, uint32_t function, int64_t at_ns)
{
    const int64_t ordered = in_order(log, &log->threads[thread], at_ns);
    log->threads[thread].depth++;
    return put_record(log, thread, SJ_IMPORT_ENTER, function, ordered, ordered);
}

sj_status sj_import_log_leave(sj_import_log *log, uint32_t thread, int64_t at_ns, bool is_thrown)
{
    if (log->threads[thread].depth == 0) {
        log->unmatched_exits++;
        return SJ_OK;
    }
    const int64_t ordered = in_order(log, &log->threads[thread], at_ns);
    log->threads[thread].depth--;
    return put_record(log, thread, is_thrown ? SJ_IMPORT_UNWIND : SJ_IMPORT_LEAVE, 0, ordered,
                      ordered);
}

sj_status sj_import_log_interval(sj_import_log *log, uint32_t thread, uint32_t function,
                                 int64_t start_ns, int64_t end_ns)
{
    if (end_ns < start_ns) {
        return SJ_EINVAL;
    }
    log->threads[thread].has_intervals = true;
    return put_record(log, thread, SJ_IMPORT_INTERVAL, function, start_ns, end_ns);
}

sj_status sj_import_log_path(sj_import_log *log, uint32_t parent, uint32_t function, uint32_t *path)
{
    const uint64_t key = (uint64_t)parent << 32 | function;
    const sj_hash_entry *known = sj_hash_map_find(&log->by_path, key, 1);
    if (known != NULL) {
        *path = known->first;
        return SJ_OK;
    }
    if (log->path_count >= SJ_IMPORT_MOST_PATHS) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_array_reserve(&log->paths, &log->path_capacity, log->path_count, 1,
                            sizeof(*log->paths)));
    log->paths[log->path_count++] = (sj_import_path){.parent = parent, .function = function};
    *path = (uint32_t)log->path_count;
    return sj_hash_map_put(&log->by_path, &(sj_hash_entry){.key = key, .sub = 1, .first = *path});
}

sj_status sj_import_log_sample(sj_import_log *log, uint32_t path, uint64_t count, uint64_t weight)
{
    sj_import_path *one = &log->paths[path - 1];
    uint64_t sum;
    if (count == 0) {
        return SJ_OK;
    }
    /* The sum over all paths stays below 2^62, so that no total can overflow. */
    if (__builtin_mul_overflow(count, weight, &sum) || sum > INT64_MAX / 2 ||
        log->weight > INT64_MAX / 2 - sum || log->samples > INT64_MAX / 2 - count) {
        return SJ_ELIMIT;
    }
    one->least = one->samples == 0 || weight < one->least ? weight : one->least;
    one->most = weight > one->most ? weight : one->most;
    one->samples += count;
    one->weight += sum;
    log->samples += count;
    log->weight += sum;
    return SJ_OK;
}

sj_status sj_import_log_samples(sj_import_log *log, uint32_t path, uint64_t count, uint64_t sum)
{
    const uint64_t samples = count == 0 && sum != 0 ? 1 : count;
    if (samples == 0) {
        return SJ_OK;
    }
    const uint64_t larger = sum % samples;
    SJ_TRY(sj_import_log_sample(log, path, samples - larger, sum / samples));
    return sj_import_log_sample(log, path, larger, sum / samples + 1);
}
