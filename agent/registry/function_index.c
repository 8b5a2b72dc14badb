#include "agent/registry/function_index.h"

#include "agent/planner/planner.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static sj_status add_functions(sj_function_index *index, const sj_plan_header *plan, uint64_t bias,
                               uint32_t first_function)
{
    const sj_plan_function *functions = sj_plan_functions(plan);
    SJ_TRY(sj_array_reserve(&index->ranges, &index->capacity, index->count, plan->function_count,
                            sizeof(*index->ranges)));
    for (uint32_t i = 0; i < plan->function_count; i++) {
        if (sj_plan_is_hooked(&functions[i])) {
            const uint64_t low = bias + functions[i].offset;
            index->ranges[index->count++] = (sj_function_range){
                .low = low, .high = low + functions[i].size, .function = first_function + i};
        }
    }
    return SJ_OK;
}

sj_status sj_function_index_add(sj_function_index *index, const char *plan_path, uint64_t bias,
                                uint32_t first_function)
{
    struct stat file_status;
    const int file = open(plan_path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return SJ_EIO;
    }
    void *bytes = MAP_FAILED;
    if (fstat(file, &file_status) == 0 && file_status.st_size > 0) {
        bytes = mmap(NULL, (size_t)file_status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    close(file);
    if (bytes == MAP_FAILED) {
        return SJ_EIO;
    }
    sj_status status = sj_plan_check(bytes, (size_t)file_status.st_size);
    if (status == SJ_OK) {
        status = add_functions(index, bytes, bias, first_function);
    }
    munmap(bytes, (size_t)file_status.st_size);
    return status;
}

static int compare_ranges(const void *left, const void *right)
{
    const sj_function_range *a = left;
    const sj_function_range *b = right;
    return a->low < b->low ? -1 : a->low > b->low;
}

void sj_function_index_finish(sj_function_index *index)
{
    if (index->count != 0) {
        qsort(index->ranges, index->count, sizeof(*index->ranges), compare_ranges);
    }
}

const sj_function_range *sj_function_index_find(const sj_function_index *index, uint64_t address)
{
    const size_t low = SJ_BISECT(0, index->count, i, index->ranges[i].low <= address);
    return low != 0 && address < index->ranges[low - 1].high ? &index->ranges[low - 1] : NULL;
}

void sj_function_index_deinit(sj_function_index *index)
{
    free(index->ranges);
    *index = (sj_function_index){0};
}
