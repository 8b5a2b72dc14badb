#include "agent/registry/method_group.h"

#include "agent/abi/machine.h"

#include <stdlib.h>

/* Mixes bytes into two 64-bit hashes in the style of FNV-1a, with different bases. They identify a
 * group and do not protect against collisions made on purpose. */
static void mix_identity(uint64_t hash[2], const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) {
        hash[0] = (hash[0] ^ at[i]) * UINT64_C(0x100000001b3);
        hash[1] = (hash[1] + at[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash[1] ^= hash[1] >> 29;
    }
}

static sj_status fill_functions(const sj_selection *selection, sj_slice names, uint32_t count,
                                uint8_t *wanted, sj_plan_function *functions)
{
    const char *at = (const char *)names.data;
    size_t left = names.size;
    for (uint32_t i = 0; i < count; i++) {
        const size_t bytes = strnlen(at, left) + 1;
        if (bytes > left || bytes == 1) {
            return SJ_ECORRUPT;
        }
        const sj_skip skip = wanted[i] != 0 ? SJ_SKIP_FILTERED : SJ_SKIP_MODULE;
        wanted[i] =
            wanted[i] != 0 && (selection == NULL || (sj_selection_wants_method(selection, at) &&
                                                     sj_selection_wants_source(selection, NULL)));
        functions[i] = (sj_plan_function){.offset = i,
                                          .name = (uint32_t)(names.size - left) + 1,
                                          .technique = wanted[i] != 0 ? SJ_TECHNIQUE_RUNTIME
                                                                      : SJ_TECHNIQUE_NONE,
                                          .skip = wanted[i] != 0 ? SJ_SKIP_NONE : (uint8_t)skip,
                                          .source = SJ_SYMBOL_RUNTIME};
        at += bytes;
        left -= bytes;
    }
    return left == 0 ? SJ_OK : SJ_ECORRUPT;
}

sj_status sj_method_group_make(const sj_selection *selection, const char *path, sj_slice names,
                               uint32_t count, uint8_t *wanted, sj_plan_header **group)
{
    const size_t functions_bytes = count * sizeof(sj_plan_function);
    const size_t size = sizeof(sj_plan_header) + functions_bytes + names.size + 1;
    if (count == 0 || count > SJ_METHOD_GROUP_MAX) {
        return SJ_ECORRUPT;
    }
    uint8_t *bytes = calloc(1, size);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    sj_plan_header *header = (sj_plan_header *)(void *)bytes;
    sj_plan_function *functions = (sj_plan_function *)(void *)(header + 1);
    uint64_t hash[2] = {UINT64_C(0xcbf29ce484222325), count};
    mix_identity(hash, path, strlen(path) + 1);
    mix_identity(hash, names.data, names.size);
    *header = (sj_plan_header){.magic = SJ_PLAN_MAGIC,
                               .version = SJ_PLAN_VERSION,
                               .machine = SJ_MACHINE_ELF,
                               .file_bytes = (uint32_t)size,
                               .build_id_bytes = sizeof(hash),
                               .function_count = count,
                               .functions_offset = sizeof(*header),
                               .strings_bytes = (uint32_t)names.size + 1,
                               .strings_offset = (uint32_t)(sizeof(*header) + functions_bytes)};
    memcpy(header->build_id, hash, sizeof(hash));
    memcpy(bytes + header->strings_offset + 1, names.data, names.size);
    const sj_status status = fill_functions(selection, names, count, wanted, functions);
    if (status != SJ_OK) {
        free(bytes);
        return status;
    }
    *group = header;
    return SJ_OK;
}

uint16_t sj_method_group_machine(void)
{
    return SJ_MACHINE_ELF;
}
