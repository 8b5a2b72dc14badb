#include "collector-server/import/uftrace.h"
#include "proto/base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

enum { LINE_BYTES = 64 * 1024, MOST_SYMBOLS = 16 * 1024 * 1024 };

sj_status sj_uftrace_open(sj_uftrace *trace, const char *name, FILE **file, char path[])
{
    if (snprintf(path, PATH_MAX, "%s/%s", trace->folder, name) >= PATH_MAX) {
        return sj_fail(trace->error, SJ_ELIMIT, "%s: a name in it is too long", trace->folder);
    }
    *file = fopen(path, "rbe");
    if (*file == NULL) {
        return sj_fail(trace->error, errno == ENOENT ? SJ_ENOTFOUND : SJ_EIO, "cannot open %s: %s",
                       path, strerror(errno));
    }
    sj_source_init(trace->source, *file, path, trace->error);
    return SJ_OK;
}

sj_status sj_uftrace_close(sj_uftrace *trace, FILE *file)
{
    sj_session_id id;
    uint64_t words[2];
    const sj_status status = sj_source_end(trace->source, "uftrace", &id);
    memcpy(words, id.bytes, sizeof(words));
    trace->hash[0] = (trace->hash[0] ^ words[0]) * UINT64_C(0x100000001b3);
    trace->hash[1] = (trace->hash[1] ^ words[1]) * UINT64_C(0x9e3779b97f4a7c15);
    fclose(file);
    return status;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Calls `take` with each line of a file of the folder. */
static sj_status read_lines(sj_uftrace *trace, const char *name,
                            sj_status (*take)(sj_uftrace *trace, char *line, void *context),
                            void *context)
{
    char path[PATH_MAX];
    FILE *file = NULL;
    SJ_TRY(sj_uftrace_open(trace, name, &file, path));
    char *line = malloc(LINE_BYTES);
    bool is_line = true;
    sj_status status = line != NULL ? SJ_OK : SJ_ENOMEM;
    while (status == SJ_OK && is_line) {
        size_t size;
        const uint64_t at = sj_source_offset(trace->source);
        status = sj_source_line(trace->source, line, LINE_BYTES, &size, &is_line);
        if (status == SJ_OK && is_line && size != 0) {
            status = take(trace, line, context);
        }
        if (status == SJ_ECORRUPT && trace->error->text[0] == '\0') {
            status = sj_source_fail(trace->source, status, at, "a line that cannot be read: %.80s",
                                    line);
        }
    }
    free(line);
    const sj_status closed = sj_uftrace_close(trace, file);
    return status != SJ_OK ? status : closed;
}

/* Takes "ADDRESS TYPE NAME". */
static sj_status take_symbol(sj_uftrace *trace, char *line, void *context)
{
    sj_uftrace_module *module = context;
    char *end = NULL;
    (void)trace;
    if (line[0] == '#') {
        return SJ_OK;
    }
    const uint64_t address = strtoull(line, &end, 16);
    if (end == line || end[0] != ' ' || end[1] == '\0' || end[2] != ' ' || end[3] == '\0') {
        return SJ_ECORRUPT;
    }
    if (module->count >= MOST_SYMBOLS) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_array_reserve(&module->symbols, &module->capacity, module->count, 1,
                            sizeof(*module->symbols)));
    char *name = strdup(end + 3);
    if (name == NULL) {
        return SJ_ENOMEM;
    }
    module->symbols[module->count++] = (sj_uftrace_symbol){
        .address = address, .is_code = strchr("TtPwWuUiI", end[1]) != NULL, .name = name};
    return SJ_OK;
}

static int compare_symbols(const void *left, const void *right)
{
    const sj_uftrace_symbol *a = left;
    const sj_uftrace_symbol *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

/* Finds the module of a path, or adds it with its symbols. A module may have no symbols. */
static sj_status find_module(sj_uftrace *trace, const char *path, size_t *module)
{
    const char *name = file_name(path);
    for (size_t i = 0; i < trace->module_count; i++) {
        if (strcmp(trace->modules[i].name, name) == 0) {
            *module = i;
            return SJ_OK;
        }
    }
    SJ_TRY(sj_array_reserve(&trace->modules, &trace->module_capacity, trace->module_count, 1,
                            sizeof(*trace->modules)));
    sj_uftrace_module *made = &trace->modules[trace->module_count];
    *made = (sj_uftrace_module){.name = strdup(name)};
    if (made->name == NULL) {
        return SJ_ENOMEM;
    }
    *module = trace->module_count++;
    char file[PATH_MAX];
    (void)snprintf(file, sizeof(file), "%s.sym", name);
    const sj_status status = read_lines(trace, file, take_symbol, made);
    if (status == SJ_ENOTFOUND) {
        *trace->error = (sj_error){0};
        return SJ_OK;
    }
    if (status == SJ_OK && made->count != 0) {
        qsort(made->symbols, made->count, sizeof(*made->symbols), compare_symbols);
    }
    return status;
}

typedef struct map_lines {
    char **lines;
    size_t count, capacity;
} map_lines;

static sj_status keep_line(sj_uftrace *trace, char *line, void *context)
{
    map_lines *kept = context;
    (void)trace;
    SJ_TRY(sj_array_reserve(&kept->lines, &kept->capacity, kept->count, 1, sizeof(*kept->lines)));
    kept->lines[kept->count] = strdup(line);
    return kept->lines[kept->count++] != NULL ? SJ_OK : SJ_ENOMEM;
}

/* Adds a mapping. `text`: "START-END PERMISSIONS OFFSET DEVICE INODE PATH [build-id:HEX]". */
static sj_status add_mapping(sj_uftrace *trace, size_t session, char *text)
{
    uint64_t start = 0;
    uint64_t end = 0;
    int length = 0;
    char *path = strchr(text, '/');
    if (sscanf(text, "%" SCNx64 "-%" SCNx64 "%n", &start, &end, &length) != 2 || length == 0 ||
        end <= start) {
        return sj_fail(trace->error, SJ_ECORRUPT, "%s: a map has a line that cannot be read: %.80s",
                       trace->folder, text);
    }
    if (path == NULL) {
        return SJ_OK;
    }
    char *suffix = strstr(path, " build-id:");
    if (suffix != NULL) {
        *suffix = '\0';
    }
    size_t module = 0;
    SJ_TRY(find_module(trace, path, &module));
    sj_uftrace_session *one = &trace->sessions[session];
    for (size_t i = 0; i < one->count; i++) {
        if (one->mappings[i].module == module) {
            one->mappings[i].end = end > one->mappings[i].end ? end : one->mappings[i].end;
            return SJ_OK;
        }
    }
    SJ_TRY(sj_array_reserve(&one->mappings, &one->capacity, one->count, 1, sizeof(*one->mappings)));
    one->mappings[one->count++] =
        (sj_uftrace_mapping){.start = start, .end = end, .module = module};
    return SJ_OK;
}

static sj_status read_map(sj_uftrace *trace, size_t session, const char *sid)
{
    char name[64];
    map_lines kept = {0};
    (void)snprintf(name, sizeof(name), "sid-%s.map", sid);
    sj_status status = read_lines(trace, name, keep_line, &kept);
    for (size_t i = 0; i < kept.count; i++) {
        if (status == SJ_OK) {
            status = add_mapping(trace, session, kept.lines[i]);
        }
        free(kept.lines[i]);
    }
    free(kept.lines);
    return status;
}

/* Returns the text of "KEY=" in a line, up to the next space, or false. */
static bool find_word(const char *line, const char *key, char *word, size_t capacity)
{
    const char *at = strstr(line, key);
    if (at == NULL) {
        return false;
    }
    at += strlen(key);
    const size_t size = strcspn(at, " \t");
    if (size == 0 || size >= capacity) {
        return false;
    }
    memcpy(word, at, size);
    word[size] = '\0';
    return true;
}

static bool find_number(const char *line, const char *key, int64_t *number)
{
    char word[32];
    char *end = NULL;
    if (!find_word(line, key, word, sizeof(word))) {
        return false;
    }
    *number = strtoll(word, &end, 10);
    return *end == '\0' && *number > 0;
}

/* Reads "timestamp=SECONDS.NANOSECONDS". */
static bool find_time(const char *line, uint64_t *at_ns)
{
    char word[48];
    uint64_t seconds = 0;
    uint64_t ns = 0;
    if (!find_word(line, "timestamp=", word, sizeof(word)) ||
        sscanf(word, "%" SCNu64 ".%" SCNu64, &seconds, &ns) != 2 || seconds > UINT32_MAX) {
        return false;
    }
    *at_ns = seconds * UINT64_C(1000000000) + ns;
    return true;
}

static sj_status take_session(sj_uftrace *trace, const char *line)
{
    sj_uftrace_session made = {0};
    char sid[32];
    const char *program = strstr(line, "exename=\"");
    if (!find_time(line, &made.since_ns) || !find_number(line, " pid=", &made.pid) ||
        !find_word(line, " sid=", sid, sizeof(sid)) || strchr(sid, '/') != NULL ||
        program == NULL) {
        return SJ_ECORRUPT;
    }
    const char *path = program + strlen("exename=\"");
    const size_t size = strcspn(path, "\"");
    char *whole = strndup(path, size);
    made.program = whole != NULL ? strdup(file_name(whole)) : NULL;
    free(whole);
    if (made.program == NULL) {
        return SJ_ENOMEM;
    }
    const sj_status status = sj_array_reserve(&trace->sessions, &trace->session_capacity,
                                              trace->session_count, 1, sizeof(*trace->sessions));
    if (status != SJ_OK) {
        free(made.program);
        return status;
    }
    trace->sessions[trace->session_count++] = made;
    return SJ_OK;
}

static sj_status take_task(sj_uftrace *trace, const char *line, bool is_fork)
{
    sj_uftrace_task task = {0};
    if (!find_number(line, " pid=", &task.pid) ||
        !find_number(line, is_fork ? " ppid=" : " tid=", is_fork ? &task.parent : &task.tid)) {
        return SJ_ECORRUPT;
    }
    task.tid = is_fork ? task.pid : task.tid;
    SJ_TRY(sj_array_reserve(&trace->tasks, &trace->task_capacity, trace->task_count, 1,
                            sizeof(*trace->tasks)));
    trace->tasks[trace->task_count++] = task;
    return SJ_OK;
}

static sj_status take_line(sj_uftrace *trace, char *line, void *context)
{
    map_lines *sids = context;
    if (strncmp(line, "SESS ", 5) == 0) {
        char sid[32] = "";
        SJ_TRY(take_session(trace, line));
        (void)find_word(line, " sid=", sid, sizeof(sid));
        return keep_line(trace, sid, sids);
    }
    if (strncmp(line, "TASK ", 5) == 0) {
        return take_task(trace, line, false);
    }
    return strncmp(line, "FORK ", 5) == 0 ? take_task(trace, line, true) : SJ_OK;
}

sj_status sj_uftrace_read_tasks(sj_uftrace *trace)
{
    map_lines sids = {0};
    sj_status status = read_lines(trace, "task.txt", take_line, &sids);
    for (size_t i = 0; i < sids.count; i++) {
        if (status == SJ_OK) {
            status = read_map(trace, i, sids.lines[i]);
        }
        free(sids.lines[i]);
    }
    free(sids.lines);
    return status;
}

/* Returns the program that a process ran at a time, or NULL. A process that was forked runs its
 * parent's program at first. */
static const sj_uftrace_session *find_session(const sj_uftrace *trace, int64_t pid, uint64_t at_ns)
{
    for (size_t turn = 0; turn <= trace->task_count; turn++) {
        const sj_uftrace_session *found = NULL;
        for (size_t i = 0; i < trace->session_count; i++) {
            const sj_uftrace_session *one = &trace->sessions[i];
            if (one->pid == pid && one->since_ns <= at_ns &&
                (found == NULL || one->since_ns >= found->since_ns)) {
                found = one;
            }
        }
        if (found != NULL) {
            return found;
        }
        int64_t parent = 0;
        for (size_t i = 0; i < trace->task_count; i++) {
            parent = trace->tasks[i].pid == pid && trace->tasks[i].parent != 0
                         ? trace->tasks[i].parent
                         : parent;
        }
        if (parent == 0) {
            break;
        }
        pid = parent;
    }
    return NULL;
}

/* Returns the symbol that an address of the module belongs to, or NULL. */
static sj_uftrace_symbol *find_symbol(sj_uftrace_module *module, uint64_t address)
{
    size_t low = 0;
    size_t high = module->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (module->symbols[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low != 0 && module->symbols[low - 1].is_code ? &module->symbols[low - 1] : NULL;
}

sj_status sj_uftrace_find(sj_uftrace *trace, const sj_uftrace_task *task, uint64_t at_ns,
                          uint64_t address, uint32_t *function)
{
    const sj_uftrace_session *session = find_session(trace, task->pid, at_ns);
    sj_uftrace_module *module = NULL;
    uint64_t relative = address;
    for (size_t i = 0; session != NULL && i < session->count; i++) {
        if (session->mappings[i].start <= address && address < session->mappings[i].end) {
            module = &trace->modules[session->mappings[i].module];
            relative = address - session->mappings[i].start;
        }
    }
    sj_uftrace_symbol *symbol = module != NULL ? find_symbol(module, relative) : NULL;
    if (symbol != NULL && symbol->function == 0) {
        SJ_TRY(sj_import_log_function(trace->log, sj_import_text(symbol->name),
                                      sj_import_text(module->name), &symbol->function));
    }
    if (symbol != NULL) {
        *function = symbol->function;
        return SJ_OK;
    }
    char name[32];
    (void)snprintf(name, sizeof(name), "<%" PRIx64 ">", relative);
    return sj_import_log_function(trace->log, sj_import_text(name),
                                  sj_import_text(module != NULL ? module->name : NULL), function);
}

void sj_uftrace_deinit(sj_uftrace *trace)
{
    for (size_t i = 0; i < trace->module_count; i++) {
        for (size_t k = 0; k < trace->modules[i].count; k++) {
            free(trace->modules[i].symbols[k].name);
        }
        free(trace->modules[i].symbols);
        free(trace->modules[i].name);
    }
    for (size_t i = 0; i < trace->session_count; i++) {
        free(trace->sessions[i].mappings);
        free(trace->sessions[i].program);
    }
    free(trace->modules);
    free(trace->sessions);
    free(trace->tasks);
    free(trace->source);
}
