/* folded: one line for each call path with self time, `outer;inner;innermost SELF_NS`, the input of
 * flame graph tools. Semicolons in names become ':', line ends become ' '. */
#include "collector-server/export/exporter.h"

#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

typedef struct name_stack {
    char **names;
    size_t depth, capacity;
} name_stack;

static char *dup_plain_name(const char *name)
{
    char *copy = strdup(name != NULL ? name : "(unknown function)");
    for (char *at = copy; at != NULL && *at != '\0'; ++at) {
        *at = *at == ';' ? ':' : *at == '\n' || *at == '\r' ? ' ' : *at;
    }
    return copy;
}

static void cut_stack(name_stack *stack, size_t depth)
{
    while (stack->depth > depth) {
        free(stack->names[--stack->depth]);
    }
}

static sj_status push_name(name_stack *stack, const char *name)
{
    SJ_TRY(
        sj_array_reserve(&stack->names, &stack->capacity, stack->depth, 1, sizeof(*stack->names)));
    stack->names[stack->depth] = dup_plain_name(name);
    return stack->names[stack->depth++] != NULL ? SJ_OK : SJ_ENOMEM;
}

static sj_status write_folded(sqlite3 *database, const sj_call_part *part, FILE *output,
                              sj_error *error)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(database,
                           "SELECT depth, name, self_ns FROM call_tree(?1, ?2, ?3) "
                           "WHERE ?4 = 0 OR depth < ?4",
                           -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the call paths: %s", sqlite3_errmsg(database));
    }
    sj_call_part_bind_tree(part, row);
    name_stack stack = {0};
    sj_status status = SJ_OK;
    int result = SQLITE_DONE;
    while (status == SJ_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        cut_stack(&stack, (size_t)sqlite3_column_int64(row, 0));
        status = push_name(&stack, (const char *)sqlite3_column_text(row, 1));
        for (size_t i = 0; status == SJ_OK && sqlite3_column_int64(row, 2) > 0 && i < stack.depth;
             ++i) {
            fprintf(output, "%s%c", stack.names[i], i + 1 < stack.depth ? ';' : ' ');
        }
        if (sqlite3_column_int64(row, 2) > 0) {
            fprintf(output, "%lld\n", (long long)sqlite3_column_int64(row, 2));
        }
    }
    if (status != SJ_OK) {
        (void)sj_fail(error, status, "no memory for the names of a call path");
    } else if (result != SQLITE_DONE) {
        status = sj_fail(error, SJ_EIO, "cannot read the call paths: %s", sqlite3_errmsg(database));
    }
    sqlite3_finalize(row);
    cut_stack(&stack, 0);
    free(stack.names);
    return status;
}

const sj_exporter sj_exporter_folded = {
    .name = "folded",
    .endings = ".folded",
    .summary = "call paths with self time in ns, one a line, for flame graph tools",
    .write = write_folded,
};
