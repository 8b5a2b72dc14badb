/* Design notes
 *
 * A module is identified by its build-id and by a digest of the functions that the planner saw. So
 * all sessions of a fleet share its rows. A hook plan says which functions were hooked, and how; it
 * is shared by digest, too. A table that was cut into parts waits in module_parts until the last
 * part has arrived. Until then, blocks that use its functions are refused as "not found", and sent
 * again. A module is announced again when other functions of it are hooked. From then on it has
 * another hook plan. */
#include "agent/abi/skip_text.h"
#include "collector-server/store/store_internal.h"
#include "proto/base/array.h"
#include "proto/base/utf8_text.h"

#include "agent/abi/plan.h"
#include "agent/objfile/demangle.h"
#include "collector-server/store/enum_text.h"
#include "proto/base/units.h"
#include "proto/wire/function_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { NAME_BYTES = 16 * 1024, DIGEST_BYTES = 16 };

typedef struct module_run {
    sj_store *store;
    sj_session_state *state;
    const Sojourn__Module *module;
    sj_slice *parts; /* their tables, each from malloc */
    size_t part_count;
    uint64_t functions_digest[2];
    uint64_t plan_digest[2];
    int64_t module_id;
    int64_t plan_id;
    int64_t first_function_id;
    char *name;             /* buffer of NAME_BYTES */
    uint64_t *fingerprints; /* sorted; of all functions without a name */
    size_t fingerprint_count, fingerprint_capacity;
    bool is_new; /* the module, or its hook plan in the session, is new */
    sj_error *error;
} module_run;

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Opens each part's table in turn and passes its functions to `visit`. */
static sj_status visit_functions(module_run *run, sj_status (*visit)(module_run *, uint32_t,
                                                                     const sj_function_entry *))
{
    uint32_t number = 0;
    for (size_t i = 0; i < run->part_count; ++i) {
        sj_function_table table;
        sj_function_entry entry;
        SJ_TRY(sj_function_table_open(run->parts[i], &table));
        while (sj_function_table_next(&table, &entry)) {
            SJ_TRY(visit(run, number++, &entry));
        }
    }
    return number == run->module->function_count
               ? SJ_OK
               : sj_fail(run->error, SJ_ECORRUPT, "module %u has %s, not %u", run->module->module,
                         SJ_COUNTED(number, "function"), run->module->function_count);
}

static sj_status digest_function(module_run *run, uint32_t number, const sj_function_entry *entry)
{
    const size_t bytes = strlen(entry->name);
    const size_t stored_bytes = sj_utf8_escape(entry->name, bytes, NULL);
    char *stored = NULL; /* the digest uses names as they are stored */
    (void)number;
    if (stored_bytes != bytes) {
        stored = calloc(1, stored_bytes + 1);
        if (stored == NULL) {
            return SJ_ENOMEM;
        }
        (void)sj_utf8_escape(entry->name, bytes, stored);
    }
    sj_store_digest_function(run->functions_digest, entry->offset, entry->size_bytes,
                             stored != NULL ? stored : entry->name);
    free(stored);
    const uint8_t plan[2] = {entry->technique, entry->skip};
    sj_store_digest(run->plan_digest, plan, sizeof(plan));
    return SJ_OK;
}

static sj_status note_fingerprint(module_run *run, uint32_t number, const sj_function_entry *entry)
{
    (void)number;
    if (entry->fingerprint == 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&run->fingerprints, &run->fingerprint_capacity, run->fingerprint_count,
                            1, sizeof(*run->fingerprints)));
    run->fingerprints[run->fingerprint_count++] = entry->fingerprint;
    return SJ_OK;
}

static int compare_fingerprints(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static sj_status gather_fingerprints(module_run *run)
{
    run->fingerprint_count = 0;
    SJ_TRY(visit_functions(run, note_fingerprint));
    if (run->fingerprint_count != 0) {
        qsort(run->fingerprints, run->fingerprint_count, sizeof(*run->fingerprints),
              compare_fingerprints);
    }
    return SJ_OK;
}

/* True if only one function of the module has this code. Shared code identifies none of them. */
static bool is_unique(const module_run *run, uint64_t fingerprint)
{
    const uint64_t *found = bsearch(&fingerprint, run->fingerprints, run->fingerprint_count,
                                    sizeof(fingerprint), compare_fingerprints);
    const uint64_t *end = run->fingerprints + run->fingerprint_count;
    return found != NULL && (found == run->fingerprints || found[-1] != fingerprint) &&
           (found + 1 == end || found[1] != fingerprint);
}

/* Returns the key that matches the function in other builds: its name, else its code. The key from
 * an address is valid in its own build only. */
static int64_t key_of(const module_run *run, const sj_function_entry *entry)
{
    const sj_slice build_id = {.data = run->module->build_id.data,
                               .size = run->module->build_id.len};
    return entry->name[0] != '\0' ? sj_store_symbol_key(run->module->path, run->name)
           : entry->fingerprint != 0 && is_unique(run, entry->fingerprint)
               ? sj_store_code_key(run->module->path, entry->fingerprint)
               : sj_store_address_key(build_id, entry->offset);
}

static sj_status add_function(module_run *run, uint32_t number, const sj_function_entry *entry)
{
    if (entry->name[0] != '\0') {
        sj_demangle(entry->name, run->name, NAME_BYTES);
    } else {
        snprintf(run->name, NAME_BYTES, "%s+0x%llx", file_name(run->module->path),
                 (unsigned long long)entry->offset);
    }
    return SJ_RUN(
        &run->store->sql, function_add, run->error, .function_id = run->first_function_id + number,
        .module_id = run->module_id, .offset = entry->offset, .size_bytes = entry->size_bytes,
        .name = run->name, .symbol = entry->name, .symbol_key = key_of(run, entry),
        .source = sj_text_of_symbol_source(entry->source), .fingerprint = entry->fingerprint);
}

/* Adds a function to the hook plan. A cold part is recorded with its function, so it counts as a
 * part, not as skipped. */
static sj_status add_plan_function(module_run *run, uint32_t number, const sj_function_entry *entry)
{
    if (entry->technique == SJ_TECHNIQUE_INLINE) { /* needs no row */
        return SJ_OK;
    }
    const char *technique =
        entry->skip == SJ_SKIP_COLD_PART ? "part" : sj_text_of_technique(entry->technique);
    return SJ_RUN(&run->store->sql, plan_function_add, run->error, .hook_plan_id = run->plan_id,
                  .function_id = run->first_function_id + number, .technique = technique,
                  .reason = sj_skip_text(entry->skip));
}

/* Removes the identity of a module row with another number of functions, which a forged file
 * brought. The sessions that use the row keep it. */
static sj_status disown_module(module_run *run)
{
    const sj_status status =
        SJ_RUN(&run->store->sql, module_disown, run->error, .module_id = run->module_id);
    return status == SJ_OK ? SJ_ENOTFOUND : status;
}

static sj_status put_module(module_run *run)
{
    sj_statements *sql = &run->store->sql;
    const sj_slice build_id = {.data = run->module->build_id.data,
                               .size = run->module->build_id.len};
    const sj_slice digest = {.data = (const uint8_t *)run->functions_digest, .size = DIGEST_BYTES};
    sj_module_find_row row;
    sj_status status = SJ_FIND(sql, module_find, &row, run->error, .build_id = build_id,
                               .functions_digest = digest);
    if (status == SJ_OK) {
        run->module_id = row.module_id;
        run->first_function_id = row.first_function_id;
        const bool is_whole = row.function_count == (int64_t)run->module->function_count;
        status = is_whole ? SJ_OK : disown_module(run);
    }
    if (status != SJ_ENOTFOUND) {
        return status;
    }
    SJ_TRY(sj_get_module_next_function(sql, &run->first_function_id, run->error));
    SJ_TRY(SJ_RUN(sql, module_add, run->error, .build_id = build_id, .functions_digest = digest,
                  .path = run->module->path, .machine = run->module->machine,
                  .first_function_id = run->first_function_id,
                  .function_count = run->module->function_count));
    run->module_id = sqlite3_last_insert_rowid(run->store->database);
    SJ_TRY(gather_fingerprints(run));
    return visit_functions(run, add_function);
}

static sj_status put_plan(module_run *run)
{
    sj_statements *sql = &run->store->sql;
    const sj_slice digest = {.data = (const uint8_t *)run->plan_digest, .size = DIGEST_BYTES};
    const sj_status status = SJ_GET(sql, plan_find, &run->plan_id, run->error,
                                    .module_id = run->module_id, .digest = digest);
    if (status != SJ_ENOTFOUND) {
        return status;
    }
    SJ_TRY(SJ_RUN(sql, plan_add, run->error, .module_id = run->module_id, .digest = digest));
    run->plan_id = sqlite3_last_insert_rowid(run->store->database);
    return visit_functions(run, add_plan_function);
}

static sj_status put_all(module_run *run)
{
    const Sojourn__Module *module = run->module;
    SJ_TRY(visit_functions(run, digest_function));
    SJ_TRY(put_module(run));
    SJ_TRY(put_plan(run));
    SJ_TRY(SJ_RUN(
        &run->store->sql, session_module_add, run->error, .session_id = run->state->session_id,
        .number = module->module, .module_id = run->module_id, .hook_plan_id = run->plan_id,
        .first_function = module->first_function, .function_count = module->function_count,
        .hooked_count = module->hooked_count, .path = module->path));
    run->is_new = sqlite3_changes(run->store->database) != 0;
    SJ_TRY(SJ_RUN(&run->store->sql, part_delete, run->error, .session_id = run->state->session_id,
                  .number = module->module));
    return sj_session_load_modules(&run->store->sql, run->state, run->error);
}

static sj_status decompress(module_run *run, sj_slice packed, size_t raw_bytes)
{
    uint8_t *output = malloc(raw_bytes != 0 ? raw_bytes : 1);
    if (output == NULL) {
        return SJ_ENOMEM;
    }
    const size_t got = ZSTD_decompress(output, raw_bytes, packed.data, packed.size);
    if (ZSTD_isError(got) || got != raw_bytes) {
        free(output);
        return sj_fail(run->error, SJ_ECORRUPT, "the function table of module %u is damaged",
                       run->module->module);
    }
    run->parts[run->part_count++] = (sj_slice){.data = output, .size = raw_bytes};
    return SJ_OK;
}

static void free_parts(module_run *run)
{
    for (size_t i = 0; i < run->part_count; ++i) {
        free((void *)(uintptr_t)run->parts[i].data);
    }
    free(run->parts);
}

/* Reads the stored parts. Returns SJ_EAGAIN if parts are missing. */
static sj_status gather_parts(module_run *run)
{
    sj_statements *sql = &run->store->sql;
    const uint32_t function_count = run->module->function_count;
    size_t capacity = 0;
    size_t raw_used = 0;
    uint64_t next = 0;
    SJ_TRY(SJ_START(sql, part_list, run->error, .session_id = run->state->session_id,
                    .number = run->module->module));
    sj_part_list_row row;
    sj_status status;
    while ((status = sj_next_part_list(sql, &row, run->error)) == SJ_OK) {
        const size_t raw_bytes = row.raw_bytes;
        if (row.first != next) {
            status = SJ_EAGAIN;
            break;
        }
        status =
            raw_bytes > SJ_FUNCTION_TABLE_MAX_BYTES - raw_used
                ? SJ_ELIMIT
                : sj_array_reserve(&run->parts, &capacity, run->part_count, 1, sizeof(*run->parts));
        if (status == SJ_OK) {
            status = decompress(run, row.data, raw_bytes);
        }
        if (status != SJ_OK) {
            break;
        }
        raw_used += raw_bytes;
        next += row.function_count;
    }
    sj_sql_reset(sql, SJ_SQL_PART_LIST);
    if (status != SJ_ENOTFOUND) {
        return status;
    }
    return next < function_count ? SJ_EAGAIN : SJ_OK;
}

static sj_status check_module(const module_run *run, const sj_frame_input *frame, bool *known)
{
    const Sojourn__Module *module = run->module;
    const uint64_t end = (uint64_t)module->first_function + module->function_count;
    if (module->build_id.len == 0 || module->build_id.len > SJ_BUILD_ID_MAX_BYTES ||
        module->first_function == 0 || end > UINT32_MAX || module->path[0] == '\0' ||
        module->raw_bytes == 0 || module->raw_bytes > SJ_FUNCTION_TABLE_MAX_BYTES ||
        frame->payload.size == 0) {
        return sj_fail(run->error, SJ_ECORRUPT, "the description of module %u is invalid",
                       module->module);
    }
    *known = false;
    for (size_t i = 0; i < run->state->module_count; ++i) {
        const sj_module_range *other = &run->state->modules[i];
        if (other->number == module->module) {
            *known = true;
            return other->first_function == module->first_function &&
                           other->function_count == module->function_count
                       ? SJ_OK
                       : sj_fail(run->error, SJ_ECORRUPT,
                                 "module %u was sent again with another identity", module->module);
        }
        if (module->first_function < other->first_function + other->function_count &&
            other->first_function < end) {
            return sj_fail(run->error, SJ_ECORRUPT, "modules %u and %u share function ids",
                           module->module, other->number);
        }
    }
    return SJ_OK;
}

static sj_status apply_part(module_run *run, const sj_frame_input *frame)
{
    const Sojourn__Module *module = run->module;
    const uint32_t count = module->part_count != 0 ? module->part_count : module->function_count;
    const sj_slice data = frame->payload;
    SJ_TRY(SJ_RUN(&run->store->sql, part_add, run->error, .session_id = run->state->session_id,
                  .number = module->module, .first = module->part_first, .function_count = count,
                  .raw_bytes = module->raw_bytes, .data = data));
    const sj_status status = gather_parts(run);
    if (status == SJ_EAGAIN) {
        return SJ_OK;
    }
    if (status != SJ_OK) {
        return sj_fail(run->error, status, "the function table of module %u cannot be used",
                       module->module);
    }
    run->name = malloc(NAME_BYTES);
    return run->name != NULL ? put_all(run) : SJ_ENOMEM;
}

sj_status sj_store_apply_module(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Module *module = frame->message;
    module_run run = {.store = store,
                      .module = module,
                      .functions_digest = SJ_FUNCTIONS_DIGEST_BEGIN,
                      .plan_digest = {UINT64_C(0xcbf29ce484222325), 2},
                      .error = error};
    SJ_TRY(sj_store_session(store, module->session_id.data, module->session_id.len, &run.state,
                            error));
    bool known = false;
    SJ_TRY(check_module(&run, frame, &known));
    const sj_status status = apply_part(&run, frame);
    frame->is_duplicate = known && !run.is_new;
    free_parts(&run);
    free(run.fingerprints);
    free(run.name);
    return status;
}
