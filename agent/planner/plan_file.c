#include "agent/planner/plan_file.h"

#include "agent/abi/plan_crc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ALIGNMENT = 8 };

const char sj_plan_version[] = "1.9.10";

typedef struct plan_layout {
    uint64_t functions;
    uint64_t stubs;
    uint64_t operations;
    uint64_t patches;
    uint64_t strings;
    uint64_t strings_bytes;
    uint64_t size;
} plan_layout;

static uint64_t align_offset(uint64_t offset)
{
    return (offset + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

static plan_layout compute_layout(const sj_builder *builder, const char *module_path)
{
    const sj_module *module = builder->module;
    plan_layout layout = {.functions = align_offset(sizeof(sj_plan_header)), .strings_bytes = 1};
    layout.stubs = align_offset(layout.functions + module->range_count * sizeof(sj_plan_function));
    layout.operations = align_offset(layout.stubs + builder->stub_count * sizeof(sj_plan_stub));
    layout.patches = align_offset(layout.operations + builder->operations_bytes);
    layout.strings = align_offset(layout.patches + builder->patch_count * sizeof(sj_plan_patch));
    layout.strings_bytes += strlen(module_path) + 1;
    for (size_t i = 0; i < module->range_count; i++) {
        const size_t bytes = strlen(module->ranges[i].name);
        layout.strings_bytes += bytes > 0 ? bytes + 1 : 0;
    }
    layout.size = align_offset(layout.strings + layout.strings_bytes);
    return layout;
}

static void copy_bytes(uint8_t *to, const void *from, size_t size)
{
    if (size > 0) {
        memcpy(to, from, size);
    }
}

static void fill_header(sj_plan_header *header, const sj_builder *builder,
                        const plan_layout *layout, sj_slice identity)
{
    const sj_module *module = builder->module;
    header->magic = SJ_PLAN_MAGIC;
    header->version = SJ_PLAN_VERSION;
    header->machine = module->elf.machine;
    header->file_bytes = (uint32_t)layout->size;
    header->build_id_bytes =
        (uint8_t)(identity.size < SJ_BUILD_ID_MAX_BYTES ? identity.size
                                                        : (size_t)SJ_BUILD_ID_MAX_BYTES);
    copy_bytes(header->build_id, identity.data, header->build_id_bytes);
    const size_t version_bytes = strlen(sj_plan_version);
    copy_bytes(header->planner_version, sj_plan_version, version_bytes);
    header->text_low = module->text_low;
    header->text_high = module->text_low + module->text_bytes;
    header->function_count = (uint32_t)module->range_count;
    header->functions_offset = (uint32_t)layout->functions;
    header->stub_count = (uint32_t)builder->stub_count;
    header->stubs_offset = (uint32_t)layout->stubs;
    header->operations_bytes = (uint32_t)builder->operations_bytes;
    header->operations_offset = (uint32_t)layout->operations;
    header->patch_count = (uint32_t)builder->patch_count;
    header->patches_offset = (uint32_t)layout->patches;
    header->strings_bytes = (uint32_t)layout->strings_bytes;
    header->strings_offset = (uint32_t)layout->strings;
    header->stub_code_bytes = builder->stub_code_bytes;
}

sj_status sj_plan_serialize(const sj_builder *builder, const char *module_path, sj_slice identity,
                            sj_plan *plan)
{
    const sj_module *module = builder->module;
    const plan_layout layout = compute_layout(builder, module_path);
    if (layout.size > UINT32_MAX) {
        return SJ_ELIMIT;
    }
    uint8_t *bytes = calloc(1, (size_t)layout.size);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    sj_plan_header *header = (sj_plan_header *)(void *)bytes;
    fill_header(header, builder, &layout, identity);
    copy_bytes(bytes + layout.stubs, builder->stubs, builder->stub_count * sizeof(*builder->stubs));
    copy_bytes(bytes + layout.operations, builder->operations, builder->operations_bytes);
    copy_bytes(bytes + layout.patches, builder->patches,
               builder->patch_count * sizeof(*builder->patches));
    uint8_t *strings = bytes + layout.strings;
    uint32_t next = 1;
    header->path_name = next;
    const size_t path_bytes = strlen(module_path) + 1;
    memcpy(strings + next, module_path, path_bytes);
    next += (uint32_t)path_bytes;
    for (size_t i = 0; i < module->range_count; i++) {
        const size_t name_bytes = strlen(module->ranges[i].name);
        builder->functions[i].name = name_bytes > 0 ? next : 0;
        builder->functions[i].own_skip = builder->functions[i].skip;
        if (name_bytes > 0) {
            memcpy(strings + next, module->ranges[i].name, name_bytes + 1);
            next += (uint32_t)name_bytes + 1;
        }
    }
    copy_bytes(bytes + layout.functions, builder->functions,
               module->range_count * sizeof(*builder->functions));
    header->crc32c = sj_plan_crc(bytes, (size_t)layout.size);
    *plan = (sj_plan){.header = header, .size_bytes = (size_t)layout.size};
    return SJ_OK;
}

sj_status sj_plan_map(const char *path, sj_plan *plan)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return SJ_ENOTFOUND;
    }
    struct stat status;
    void *bytes = MAP_FAILED;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    }
    close(file);
    if (bytes == MAP_FAILED) {
        return SJ_ECORRUPT;
    }
    const sj_status checked = sj_plan_check(bytes, (size_t)status.st_size);
    if (checked != SJ_OK) {
        munmap(bytes, (size_t)status.st_size);
        return checked;
    }
    *plan = (sj_plan){.header = bytes, .size_bytes = (size_t)status.st_size, .mapped = true};
    return SJ_OK;
}

void sj_plan_free(sj_plan *plan)
{
    void *bytes = (void *)(uintptr_t)plan->header;
    if (plan->mapped && bytes != NULL) {
        munmap(bytes, plan->size_bytes);
    } else {
        free(bytes);
    }
    *plan = (sj_plan){0};
}

static bool write_all(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t written_bytes = write(file, bytes, size);
        if (written_bytes <= 0) {
            if (written_bytes < 0 && errno == EINTR) {
                continue;
            }
            return false;
        }
        bytes += written_bytes;
        size -= (size_t)written_bytes;
    }
    return true;
}

sj_status sj_plan_write(const sj_plan *plan, const char *path, sj_error *error)
{
    char temporary[SJ_PLAN_PATH_BYTES];
    const int path_length = snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
    if (path_length < 0 || (size_t)path_length >= sizeof(temporary)) {
        return sj_fail(error, SJ_ELIMIT, "plan path %s is too long", path);
    }
    const int file = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (file < 0) {
        return sj_fail(error, SJ_EIO, "cannot create %s: %s", temporary, strerror(errno));
    }
    const bool is_written = write_all(file, (const char *)plan->header, plan->size_bytes);
    int reason = errno;
    const bool is_closed = close(file) == 0;
    reason = is_written && !is_closed ? errno : reason;
    if (!is_written || !is_closed) {
        unlink(temporary);
        return sj_fail(error, SJ_EIO, "cannot write %s: %s", temporary, strerror(reason));
    }
    if (rename(temporary, path) != 0) {
        reason = errno;
        unlink(temporary);
        return sj_fail(error, SJ_EIO, "cannot rename %s to %s: %s", temporary, path,
                       strerror(reason));
    }
    return SJ_OK;
}
