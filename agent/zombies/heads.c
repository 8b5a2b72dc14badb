/* Design notes
 *
 * The planner's plan for the same functions patches their exits, too. Here each function is left
 * with the patch of its entry, the last of its group, and what comes back from the entry's stub
 * runs the original exits. A function's stub must begin with the entry's probe: what is put in its
 * place runs in front of the function's first instruction. */
#include "agent/zombies/heads.h"

#include "agent/abi/plan_crc.h"
#include "agent/objfile/symbols.h"
#include "agent/planner/planner.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[SJ_HEADS] = {"malloc",         "calloc",
                                            "aligned_alloc",  "memalign",
                                            "posix_memalign", "valloc",
                                            "pvalloc",        "free",
                                            "realloc",        "malloc_usable_size",
                                            "sigaction",      "pthread_sigmask",
                                            "read",           "write",
                                            "pread64",        "pwrite64",
                                            "recv",           "send",
                                            "recvfrom",       "sendto"};

/* Blocks of these are not guarded, or their buffers not looked at, where they cannot be patched. */
static bool may_lack(uint32_t head)
{
    return (head > SJ_HEAD_CALLOC && head < SJ_HEAD_FREE) || head > SJ_HEAD_SIGACTION;
}

static sj_status find_offsets(const char *library, uint64_t offsets[SJ_HEADS], sj_error *error)
{
    sj_elf elf = {0};
    sj_symbols symbols = {0};
    SJ_TRY(sj_elf_open(library, &elf, error));
    sj_status status = sj_symbols_read(&elf, SHT_DYNSYM, SJ_SYMBOL_DYNSYM, &symbols);
    for (size_t i = 0; status == SJ_OK && i < symbols.count; i++) {
        for (uint32_t head = 0; head < SJ_HEADS; head++) {
            if (strcmp(symbols.items[i].name, names[head]) == 0) {
                offsets[head] = symbols.items[i].address;
            }
        }
    }
    for (uint32_t head = 0; status == SJ_OK && head < SJ_HEADS; head++) {
        if (offsets[head] == 0 && !may_lack(head)) {
            status = sj_fail(error, SJ_EUNSUPPORTED, "%.200s has no %s", library, names[head]);
        }
    }
    sj_symbols_free(&symbols);
    sj_elf_close(&elf);
    return status;
}

static bool is_head(void *context, const char *name, uint64_t offset, uint32_t size_bytes)
{
    const uint64_t *offsets = context;
    (void)name;
    (void)size_bytes;
    for (uint32_t head = 0; head < SJ_HEADS; head++) {
        if (offsets[head] == offset && offset != 0) {
            return true;
        }
    }
    return false;
}

static bool begins_with_entry(const sj_plan_header *plan, const sj_plan_patch *patch)
{
    const sj_plan_stub *stub = &sj_plan_stubs(plan)[patch->stub];
    const uint8_t *operations = (const uint8_t *)plan + plan->operations_offset + stub->operations;
    const uint32_t first =
        stub->operations_bytes > 1 && operations[0] == SJ_OPERATION_FREE_FLAGS ? 1 : 0;
    return stub->operations_bytes > first && operations[first] == SJ_OPERATION_ENTER;
}

/* Leaves a function with the patch of its entry. */
static bool keep_entry(const sj_plan_header *plan, sj_plan_function *function)
{
    if (!sj_plan_is_hooked(function)) {
        return false;
    }
    const uint32_t last = function->first_patch + function->patch_count - 1;
    const sj_plan_patch *patch = &sj_plan_patches(plan)[last];
    if (patch->kind != SJ_PATCH_JUMP32 || patch->offset != function->offset ||
        !begins_with_entry(plan, patch)) {
        return false;
    }
    function->first_patch = last;
    function->patch_count = 1;
    return true;
}

/* Aliases of one address have one function. */
static void find_heads(const sj_plan_header *plan, const uint64_t offsets[SJ_HEADS],
                       uint32_t heads[SJ_HEADS])
{
    sj_plan_function *functions = (sj_plan_function *)(uintptr_t)sj_plan_functions(plan);
    memset(heads, 0, SJ_HEADS * sizeof(*heads));
    for (uint32_t i = 0; i < plan->function_count; i++) {
        if (!keep_entry(plan, &functions[i])) {
            functions[i].skip = SJ_SKIP_FILTERED;
            continue;
        }
        for (uint32_t head = 0; head < SJ_HEADS; head++) {
            if (functions[i].offset == offsets[head]) {
                heads[head] = i + 1;
            }
        }
    }
}

static sj_zombie_half half_of(const uint32_t heads[SJ_HEADS], uint32_t function)
{
    for (uint32_t head = SJ_HEAD_FREE; head < SJ_HEADS; head++) {
        if (heads[head] == function + 1) {
            return SJ_HEAP_GIVERS;
        }
    }
    return SJ_HEAP_TAKERS;
}

/* Writes the plan with the functions of one half wanted. */
static sj_status write_half(sj_plan_header *plan, uint64_t bytes, const uint32_t heads[SJ_HEADS],
                            sj_zombie_half half, const char *path, sj_error *error)
{
    sj_plan_header *copy = malloc(bytes);
    if (copy == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    memcpy(copy, plan, bytes);
    sj_plan_function *functions = (sj_plan_function *)(uintptr_t)sj_plan_functions(copy);
    for (uint32_t i = 0; i < copy->function_count; i++) {
        if (half_of(heads, i) != half) {
            functions[i].skip = SJ_SKIP_FILTERED;
        }
    }
    copy->crc32c = 0;
    copy->crc32c = sj_plan_crc(copy, copy->file_bytes);
    const sj_plan kept = {.header = copy, .size_bytes = bytes};
    const sj_status status = sj_plan_write(&kept, path, error);
    free(copy);
    return status;
}

static sj_status write_halves(sj_plan_header *plan, uint64_t bytes,
                              const uint64_t offsets[SJ_HEADS],
                              const char *const plan_paths[SJ_HEAP_HALVES],
                              uint32_t heads[SJ_HEADS], sj_error *error)
{
    find_heads(plan, offsets, heads);
    for (uint32_t head = 0; head < SJ_HEADS; head++) {
        if (heads[head] == 0 && !may_lack(head)) {
            return sj_fail(error, SJ_EUNSUPPORTED, "the entry of %s cannot be patched",
                           names[head]);
        }
    }
    SJ_TRY(write_half(plan, bytes, heads, SJ_HEAP_TAKERS, plan_paths[SJ_HEAP_TAKERS], error));
    return write_half(plan, bytes, heads, SJ_HEAP_GIVERS, plan_paths[SJ_HEAP_GIVERS], error);
}

sj_status sj_heads_plan(const char *library, const char *cache_directory,
                        const char *const plan_paths[SJ_HEAP_HALVES], uint32_t heads[SJ_HEADS],
                        uint64_t *malloc_offset, sj_error *error)
{
    uint64_t offsets[SJ_HEADS] = {0};
    sj_plan plan = {0};
    SJ_TRY(find_offsets(library, offsets, error));
    const sj_planner_options options = {.module_path = library,
                                        .cache_directory = cache_directory,
                                        .wanted = is_head,
                                        .context = offsets};
    SJ_TRY(sj_plan_make(&options, &plan, error));
    sj_plan_header *copy = malloc(plan.size_bytes);
    sj_status status = SJ_ENOMEM;
    if (copy != NULL) {
        memcpy(copy, plan.header, plan.size_bytes);
        status = write_halves(copy, plan.size_bytes, offsets, plan_paths, heads, error);
    }
    free(copy);
    sj_plan_free(&plan);
    *malloc_offset = offsets[SJ_HEAD_MALLOC];
    return status;
}
