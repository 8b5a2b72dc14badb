#include "agent/abi/plan_check.h"

#include "agent/abi/page.h"
#include "agent/abi/plan_crc.h"
#include "proto/base/cursor.h"

#include <string.h>

/* Freestanding: linked into the agent. Every position is checked before it is read. */

enum { LABELS_MAX = 1 << 20, CONDITIONS = 16, ALIGNMENT = 8, DISTANCE_BYTES = 4, SLOT_BYTES = 8 };
enum { PIECE = SJ_PAGE_LEAST_BYTES, JUMP32_BYTES = 5 };

static bool is_table_inside(uint64_t offset, uint64_t count, uint64_t element, uint64_t size)
{
    return offset % ALIGNMENT == 0 && offset >= sizeof(sj_plan_header) && offset <= size &&
           count * element <= size - offset;
}

static bool is_header_valid(const sj_plan_header *header, size_t size)
{
    return header->file_bytes == size && header->build_id_bytes <= SJ_BUILD_ID_MAX_BYTES &&
           header->text_low <= header->text_high &&
           is_table_inside(header->functions_offset, header->function_count,
                           sizeof(sj_plan_function), size) &&
           is_table_inside(header->stubs_offset, header->stub_count, sizeof(sj_plan_stub), size) &&
           is_table_inside(header->operations_offset, header->operations_bytes, 1, size) &&
           is_table_inside(header->patches_offset, header->patch_count, sizeof(sj_plan_patch),
                           size) &&
           is_table_inside(header->strings_offset, header->strings_bytes, 1, size) &&
           header->strings_bytes > 0 && sj_plan_string(header, 0)[0] == 0 &&
           sj_plan_string(header, header->strings_bytes - 1)[0] == 0 &&
           header->path_name < header->strings_bytes;
}

static bool is_inside_text(const sj_plan_header *header, uint64_t offset, uint64_t size)
{
    return offset >= header->text_low && offset <= header->text_high &&
           size <= header->text_high - offset;
}

static bool is_import_valid(const sj_plan_function *function)
{
    return function->size == SLOT_BYTES && function->offset % SLOT_BYTES == 0 &&
           function->patch_count <= 1 &&
           (function->technique == SJ_TECHNIQUE_NONE || function->technique == SJ_TECHNIQUE_GOT);
}

static bool are_values_valid(const sj_plan_function *function)
{
    enum { SHIFTS = 4 };
    bool valid = function->value_shift < SHIFTS;
    if (!sj_plan_has_values(function)) {
        return valid;
    }
    for (uint32_t i = 0; i < SJ_PLACES_PER_FUNCTION; i++) {
        const uint8_t place = function->values[i];
        if (i != 0 && function->values[i - 1] == SJ_PLACE_WORDS) {
            continue; /* a number */
        }
        valid =
            valid && (place == 0 || place == SJ_PLACE_CPU_ENTRY || place == SJ_PLACE_MEMORY_ENTRY ||
                      place == SJ_PLACE_ERRNO || sj_place_is_limit(place) ||
                      sj_place_is_size(place) || sj_value_kind_of(place) != 0);
    }
    return valid;
}

static bool is_function_valid(const sj_plan_header *header, const sj_plan_function *function)
{
    const bool is_hooked = function->technique != SJ_TECHNIQUE_NONE;
    const bool is_import = function->source == SJ_SYMBOL_IMPORT;
    return (function->source == SJ_SYMBOL_GENERATED || function->name < header->strings_bytes) &&
           function->technique <= SJ_TECHNIQUE_RUNTIME &&
           function->skip <= SJ_SKIP_CALLER_MATTERS && function->source >= SJ_SYMBOL_SYMTAB &&
           function->source <= SJ_SYMBOL_GENERATED && is_hooked == (function->patch_count > 0) &&
           (is_hooked ? function->skip <= SJ_SKIP_FILTERED : function->skip != SJ_SKIP_NONE) &&
           function->own_skip <= SJ_SKIP_CALLER_MATTERS && are_values_valid(function) &&
           function->first_patch <= header->patch_count &&
           function->patch_count <= header->patch_count - function->first_patch &&
           (is_import ? is_import_valid(function)
                      : is_inside_text(header, function->offset, function->size) &&
                            function->technique != SJ_TECHNIQUE_GOT);
}

/* True if each patch of the function's group names the function. So two groups cannot share a
 * patch. */
static bool is_group_valid(const sj_plan_header *header, uint32_t index)
{
    const sj_plan_function *function = &sj_plan_functions(header)[index];
    const sj_plan_patch *patches = sj_plan_patches(header);
    for (uint32_t i = 0; i < function->patch_count; i++) {
        if (patches[function->first_patch + i].function != index) {
            return false;
        }
    }
    return true;
}

static bool is_short_jump_valid(const sj_plan_header *header, const sj_plan_patch *patch)
{
    if (patch->via >= header->patch_count || patch->bytes > 2 || patch->window < 2) {
        return false;
    }
    const sj_plan_patch *island = &sj_plan_patches(header)[patch->via];
    const int64_t distance = (int64_t)(island->offset - patch->offset - 2);
    if (patch->bytes == 1 &&
        (patch->original[1] != (uint8_t)distance ||
         patch->offset / PIECE != (island->offset + JUMP32_BYTES - 1) / PIECE ||
         patch->offset / PIECE != island->offset / PIECE)) {
        return false;
    }
    return island->kind == SJ_PATCH_JUMP32 && island->function == patch->function &&
           island->stub == patch->stub && island < patch && distance >= INT8_MIN &&
           distance <= INT8_MAX;
}

/* True if the patch of an import writes its slot, and any other patch writes code. */
static bool is_place_valid(const sj_plan_header *header, const sj_plan_patch *patch)
{
    const sj_plan_function *function = &sj_plan_functions(header)[patch->function];
    if (patch->kind == SJ_PATCH_SLOT) {
        return function->source == SJ_SYMBOL_IMPORT && patch->offset == function->offset;
    }
    return function->source != SJ_SYMBOL_IMPORT &&
           is_inside_text(header, patch->offset, patch->window);
}

static bool is_patch_valid(const sj_plan_header *header, const sj_plan_patch *patch)
{
    if (patch->function >= header->function_count || patch->stub >= header->stub_count ||
        sj_plan_stubs(header)[patch->stub].function != patch->function || patch->bytes == 0 ||
        patch->bytes > patch->window || patch->window > SJ_PATCH_MAX_BYTES ||
        !is_place_valid(header, patch) ||
        sj_plan_functions(header)[patch->function].technique == SJ_TECHNIQUE_NONE) {
        return false;
    }
    switch (patch->kind) {
    case SJ_PATCH_JUMP32:
        return patch->bytes >= 5;
    case SJ_PATCH_REL32:
        return patch->bytes == DISTANCE_BYTES && patch->window == DISTANCE_BYTES;
    case SJ_PATCH_JUMP8:
        return is_short_jump_valid(header, patch);
    case SJ_PATCH_TRAP:
        return patch->bytes == 1;
    case SJ_PATCH_BRANCH26:
        return patch->bytes == 4;
    case SJ_PATCH_SLOT:
        return patch->bytes == SLOT_BYTES && patch->window == SLOT_BYTES;
    default:
        return false;
    }
}

/* Reads a byte count, that many bytes, and the position of a 32-bit field in them. */
static bool skip_copy(sj_reader *operations, bool has_field, uint64_t *code_bytes)
{
    const uint64_t size = sj_read_varint(operations);
    (void)sj_read_bytes(operations, (size_t)size);
    *code_bytes += size;
    if (has_field && !operations->bad) {
        const uint64_t field = sj_read_varint(operations);
        return size >= DISTANCE_BYTES && field <= size - DISTANCE_BYTES && !operations->bad;
    }
    return !operations->bad;
}

static bool is_callee_valid(const sj_plan_header *header, uint64_t callee)
{
    return callee < header->function_count &&
           sj_plan_functions(header)[callee].source != SJ_SYMBOL_IMPORT;
}

static bool is_jump_leave_valid(sj_reader *operations, uint64_t *code_bytes)
{
    const bool has_register = sj_read_varint(operations) < SJ_JUMP_REGISTERS;
    const uint64_t size = sj_read_varint(operations);
    if (!has_register || size > SJ_JUMP_STORE_MAX_BYTES) {
        return false;
    }
    (void)sj_read_bytes(operations, (size_t)size);
    const uint64_t field = sj_read_varint(operations);
    (void)sj_read_zigzag(operations);
    *code_bytes += size + SJ_PLAN_PROBE_BYTES;
    return field == 0 || (size >= DISTANCE_BYTES && field <= size - DISTANCE_BYTES);
}

static bool is_operation_valid(const sj_plan_header *header, sj_reader *operations,
                               uint64_t *code_bytes)
{
    switch (sj_read_u8(operations)) {
    case SJ_OPERATION_ENTER:
    case SJ_OPERATION_LEAVE:
        *code_bytes += SJ_PLAN_PROBE_BYTES;
        return true;
    case SJ_OPERATION_COPY:
        return skip_copy(operations, false, code_bytes);
    case SJ_OPERATION_COPY_RELATIVE:
        return skip_copy(operations, true, code_bytes) && (sj_read_zigzag(operations), true);
    case SJ_OPERATION_JUMP:
        *code_bytes += SJ_PLAN_JUMP_BYTES;
        (void)sj_read_zigzag(operations);
        return true;
    case SJ_OPERATION_PUSH_RETURN:
        *code_bytes += SJ_PLAN_PUSH_BYTES;
        (void)sj_read_zigzag(operations);
        return true;
    case SJ_OPERATION_JUMP_IF_STUB:
        *code_bytes += SJ_PLAN_JUMP_BYTES;
        return sj_read_varint(operations) < CONDITIONS &&
               sj_read_varint(operations) < header->stub_count;
    case SJ_OPERATION_JUMP_STUB:
        *code_bytes += SJ_PLAN_JUMP_BYTES;
        return sj_read_varint(operations) < header->stub_count;
    case SJ_OPERATION_COPY_TO_LABEL:
        return skip_copy(operations, true, code_bytes) && sj_read_varint(operations) < LABELS_MAX;
    case SJ_OPERATION_LABEL:
        return sj_read_varint(operations) < LABELS_MAX;
    case SJ_OPERATION_DISPATCH:
        *code_bytes += SJ_PLAN_DISPATCH_BYTES;
        return true;
    case SJ_OPERATION_FREE_FLAGS:
        return true;
    case SJ_OPERATION_TAIL_CALL:
        *code_bytes += SJ_PLAN_PROBE_BYTES + SJ_PLAN_JUMP_BYTES;
        return is_callee_valid(header, sj_read_varint(operations));
    case SJ_OPERATION_JUMP_LEAVE:
        return is_jump_leave_valid(operations, code_bytes);
    case SJ_OPERATION_PLACE:
        (void)sj_read_zigzag(operations);
        return true;
    default:
        return false;
    }
}

static bool is_stub_valid(const sj_plan_header *header, const sj_plan_stub *stub)
{
    if (stub->function >= header->function_count || stub->operations > header->operations_bytes ||
        stub->operations_bytes > header->operations_bytes - stub->operations) {
        return false;
    }
    const uint8_t *bytes = (const uint8_t *)header + header->operations_offset + stub->operations;
    sj_reader operations = sj_reader_of(bytes, stub->operations_bytes);
    uint64_t code_bytes = 0;
    while (sj_reader_left(&operations) > 0) {
        if (!is_operation_valid(header, &operations, &code_bytes) || operations.bad) {
            return false;
        }
    }
    return code_bytes <= stub->code_bytes;
}

static bool is_content_valid(const sj_plan_header *header)
{
    uint64_t code_bytes = 0;
    for (uint32_t i = 0; i < header->stub_count; i++) {
        if (!is_stub_valid(header, &sj_plan_stubs(header)[i])) {
            return false;
        }
        code_bytes += sj_plan_stubs(header)[i].code_bytes;
    }
    for (uint32_t i = 0; i < header->patch_count; i++) {
        if (!is_patch_valid(header, &sj_plan_patches(header)[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < header->function_count; i++) {
        if (!is_function_valid(header, &sj_plan_functions(header)[i]) ||
            !is_group_valid(header, i)) {
            return false;
        }
    }
    return code_bytes <= header->stub_code_bytes;
}

sj_status sj_plan_check(const void *bytes, size_t size_bytes)
{
    const sj_plan_header *header = bytes;
    if (size_bytes < sizeof(*header) || (uintptr_t)bytes % ALIGNMENT != 0 ||
        header->magic != SJ_PLAN_MAGIC) {
        return SJ_ECORRUPT;
    }
    if (header->version != SJ_PLAN_VERSION) {
        return SJ_EVERSION;
    }
    if (!is_header_valid(header, size_bytes) || sj_plan_crc(bytes, size_bytes) != header->crc32c ||
        !is_content_valid(header)) {
        return SJ_ECORRUPT;
    }
    return SJ_OK;
}
