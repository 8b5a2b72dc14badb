/* Design notes
 *
 * elfutils' libdw reads DWARF for source filters and for stacks of other processes' threads.
 * Loading it would load further libraries into the program (libdebuginfod, and with it curl). So
 * these replacements find nothing, and options.c refuses policies that need libdw. */
#include "agent/objfile/function_types.h"
#include "agent/objfile/source_map.h"
#include "agent/ptrace/unwinder.h"

sj_status sj_source_map_new(const char *path, sj_source_map **map)
{
    (void)path;
    *map = NULL;
    return SJ_EUNSUPPORTED;
}

void sj_source_map_free(sj_source_map *map)
{
    (void)map;
}

const char *sj_source_map_find(const sj_source_map *map, uint64_t offset)
{
    (void)map;
    (void)offset;
    return NULL;
}

sj_status sj_function_types_new(const char *path, sj_function_types **types)
{
    (void)path;
    *types = NULL;
    return SJ_EUNSUPPORTED;
}

void sj_function_types_free(sj_function_types *types)
{
    (void)types;
}

sj_split_state sj_function_types_split(const sj_function_types *types)
{
    (void)types;
    return SJ_SPLIT_COMPLETE;
}

sj_status sj_function_types_find(sj_function_types *types, uint64_t offset, const char *symbol,
                                 sj_typed_function **function)
{
    (void)types;
    (void)offset;
    (void)symbol;
    *function = NULL;
    return SJ_ENOTFOUND;
}

sj_status sj_unwinder_new(const sj_tracee *target, sj_unwinder **unwinder)
{
    (void)target;
    *unwinder = NULL;
    return SJ_EUNSUPPORTED;
}

void sj_unwinder_free(sj_unwinder *unwinder)
{
    (void)unwinder;
}

sj_status sj_stack_copy_read(const sj_tracee *target, pid_t tid, size_t limit, sj_stack_copy *copy)
{
    (void)target;
    (void)tid;
    (void)limit;
    *copy = (sj_stack_copy){0};
    return SJ_EUNSUPPORTED;
}

void sj_stack_copy_deinit(sj_stack_copy *copy)
{
    (void)copy;
}

size_t sj_unwinder_walk(sj_unwinder *unwinder, const sj_stack_copy *copy, sj_native_frame *frames,
                        size_t capacity)
{
    (void)unwinder;
    (void)copy;
    (void)frames;
    (void)capacity;
    return 0;
}

void sj_unwinder_hide_agent(sj_unwinder *unwinder, const sj_remote_stubs *stubs)
{
    (void)unwinder;
    (void)stubs;
}

bool sj_unwinder_came_to_end(const sj_unwinder *unwinder)
{
    (void)unwinder;
    return false;
}

void sj_unwinder_locate(sj_unwinder *unwinder, uint64_t pc, sj_code_place *place)
{
    (void)unwinder;
    *place = (sj_code_place){.offset = pc};
}

const char *sj_unwinder_name(sj_unwinder *unwinder, uint64_t pc)
{
    (void)unwinder;
    (void)pc;
    return NULL;
}

sj_status sj_unwinder_new_past(const sj_mapped_file *files, size_t count, sj_unwinder **unwinder)
{
    (void)files;
    (void)count;
    *unwinder = NULL;
    return SJ_EUNSUPPORTED;
}
