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

typedef struct folded_writer {
    name_stack stack;
    FILE *output;
} folded_writer;

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

/* Writes a line for one call path. Its row comes after the row of its caller. */
static sj_status write_path(void *context, sqlite3_stmt *row)
{
    folded_writer *writer = context;
    const int64_t self_ns = sqlite3_column_int64(row, 2);
    cut_stack(&writer->stack, (size_t)sqlite3_column_int64(row, 0));
    SJ_TRY(push_name(&writer->stack, (const char *)sqlite3_column_text(row, 1)));
    for (size_t i = 0; self_ns > 0 && i < writer->stack.depth; ++i) {
        fprintf(writer->output, "%s%c", writer->stack.names[i],
                i + 1 < writer->stack.depth ? ';' : ' ');
    }
    if (self_ns > 0) {
        fprintf(writer->output, "%lld\n", (long long)self_ns);
    }
    return SJ_OK;
}

static sj_status write_folded(sqlite3 *database, const sj_call_part *part, FILE *output,
                              sj_error *error)
{
    folded_writer writer = {.output = output};
    const sj_status status = sj_sql_each(database,
                                         "SELECT depth, name, self_ns FROM call_tree(?1, ?2, ?3) "
                                         "WHERE ?4 = 0 OR depth < ?4",
                                         sj_call_part_tree_binds(part), write_path, &writer, error);
    cut_stack(&writer.stack, 0);
    free(writer.stack.names);
    return status == SJ_ENOMEM ? sj_fail(error, status, "no memory for the names of a call path")
                               : status;
}

const sj_exporter sj_exporter_folded = {
    .name = "folded",
    .endings = ".folded",
    .summary = "call paths with self time in ns, one a line, for flame graph tools",
    .write = write_folded,
};
