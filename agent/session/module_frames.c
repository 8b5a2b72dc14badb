#include "agent/session/module_frames.h"

#include "agent/objfile/elf_machine.h"
#include "proto/wire/function_table.h"

#include <stdlib.h>
#include <zstd.h>

/* Upper bound of a part's raw table, so that it fits into one frame even if it does not compress.
 * */
enum { PART_RAW_BYTES = 6 * 1024 * 1024, ENTRY_OVERHEAD_BYTES = 32, COMPRESSION_LEVEL = 3 };

typedef struct module_part {
    const sj_plan_header *plan;
    const char *path;
    uint32_t module;
    uint32_t first_function;
    uint32_t hooked_count;
    uint32_t first; /* index of the part's first function in the plan */
    uint32_t count;
} module_part;

static const char *machine_key(uint16_t number)
{
    const sj_elf_machine *machine = sj_elf_machine_of(number);
    return machine != NULL ? machine->key : "unknown";
}

/* Returns how many functions from `first` on fit into one part. */
static uint32_t cut_part(const sj_plan_header *plan, uint32_t first)
{
    const sj_plan_function *functions = sj_plan_functions(plan);
    size_t bytes = 0;
    uint32_t next = first;
    while (next < plan->function_count) {
        bytes += strlen(sj_plan_string(plan, functions[next].name)) + ENTRY_OVERHEAD_BYTES;
        if (bytes > PART_RAW_BYTES && next > first) {
            break;
        }
        next++;
    }
    return next - first;
}

static void fill_entries(const module_part *part, sj_function_entry *entries)
{
    const sj_plan_function *functions = sj_plan_functions(part->plan) + part->first;
    for (uint32_t i = 0; i < part->count; i++) {
        entries[i] = (sj_function_entry){.offset = functions[i].offset,
                                         .size_bytes = functions[i].size,
                                         .technique = sj_plan_is_hooked(&functions[i])
                                                          ? functions[i].technique
                                                          : (uint8_t)SJ_TECHNIQUE_NONE,
                                         .skip = functions[i].skip,
                                         .source = functions[i].source,
                                         .name = sj_plan_string(part->plan, functions[i].name),
                                         .fingerprint = functions[i].fingerprint};
    }
}

static sj_status send_compressed(sj_frame_writer *writer, const module_part *part, sj_slice payload,
                                 size_t raw_bytes)
{
    Sojourn__Module message = SOJOURN__MODULE__INIT;
    message.session_id = sj_frame_writer_session_bytes(writer);
    message.module = part->module;
    message.build_id.len = part->plan->build_id_bytes;
    message.build_id.data = (uint8_t *)(uintptr_t)part->plan->build_id;
    message.path = (char *)(uintptr_t)part->path;
    message.first_function = part->first_function;
    message.function_count = part->plan->function_count;
    message.raw_bytes = (uint32_t)raw_bytes;
    message.hooked_count = part->hooked_count;
    message.machine = (char *)(uintptr_t)machine_key(part->plan->machine);
    message.part_first = part->first;
    message.part_count = part->count;
    return sj_frame_writer_send(writer, SJ_FRAME_MODULE, &message.base, payload);
}

static void name_functions(sj_frame_writer *writer, const module_part *part,
                           const sj_function_entry *entries)
{
    sj_function_log *log = sj_frame_writer_function_log(writer);
    for (uint32_t i = 0; log != NULL && i < part->count; i++) {
        sj_function_log_name(log, part->first_function + part->first + i, entries[i].name,
                             sj_frame_writer_path(writer, part->path), entries[i].offset);
    }
}

static sj_status send_part(sj_frame_writer *writer, const module_part *part)
{
    sj_function_entry *entries = calloc(part->count != 0 ? part->count : 1, sizeof(*entries));
    uint8_t *raw = NULL;
    uint8_t *compressed = NULL;
    size_t raw_bytes = 0;
    sj_status status = SJ_ENOMEM;
    if (entries != NULL) {
        fill_entries(part, entries);
        name_functions(writer, part, entries);
        const size_t raw_capacity = sj_function_table_bound(entries, part->count);
        const size_t capacity = ZSTD_compressBound(raw_capacity);
        raw = malloc(raw_capacity);
        compressed = malloc(capacity);
        if (raw != NULL && compressed != NULL) {
            status = sj_function_table_write(entries, part->count, raw, raw_capacity, &raw_bytes);
        }
        if (status == SJ_OK) {
            const size_t size =
                ZSTD_compress(compressed, capacity, raw, raw_bytes, COMPRESSION_LEVEL);
            const sj_slice payload = {.data = compressed, .size = size};
            status =
                ZSTD_isError(size) ? SJ_ENOMEM : send_compressed(writer, part, payload, raw_bytes);
        }
    }
    free(entries);
    free(raw);
    free(compressed);
    return status;
}

sj_status sj_module_frames_send(sj_frame_writer *writer, const sj_plan_header *plan,
                                const char *path, uint32_t module, uint32_t first_function)
{
    const sj_plan_function *functions = sj_plan_functions(plan);
    module_part part = {
        .plan = plan, .path = path, .module = module, .first_function = first_function};
    for (uint32_t i = 0; i < plan->function_count; i++) {
        part.hooked_count += sj_plan_is_hooked(&functions[i]);
    }
    do {
        part.count = cut_part(plan, part.first);
        SJ_TRY(send_part(writer, &part));
        part.first += part.count;
    } while (part.first < plan->function_count);
    return SJ_OK;
}
