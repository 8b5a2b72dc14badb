#include "collector-server/forward/clickhouse_block.h"

const char *sj_clickhouse_type(sj_forward_kind kind)
{
    static const char *const types[] = {[SJ_FORWARD_TEXT] = "String",
                                        [SJ_FORWARD_UUID] = "FixedString(32)",
                                        [SJ_FORWARD_HEX] = "String",
                                        [SJ_FORWARD_SMALL] = "UInt8",
                                        [SJ_FORWARD_COUNT] = "UInt64",
                                        [SJ_FORWARD_NUMBER] = "Int64",
                                        [SJ_FORWARD_MAYBE] = "Nullable(Int64)",
                                        [SJ_FORWARD_PATH] = "UInt64",
                                        [SJ_FORWARD_KEY] = "UInt64",
                                        [SJ_FORWARD_SYMBOL] = "UInt64",
                                        [SJ_FORWARD_NAME] = "String",
                                        [SJ_FORWARD_BUILD] = "String",
                                        [SJ_FORWARD_OFFSET] = "UInt64",
                                        [SJ_FORWARD_MODULE] = "String"};
    return types[kind];
}

/* A column of the block. The column headers share one growing buffer, so pointers into it are taken
 * only when it is complete. */
typedef struct block_column {
    size_t header_end;
    const sj_byte_buffer *extra, *data; /* extra may be NULL */
} block_column;

typedef struct column_list {
    block_column columns[SJ_NATIVE_COLUMNS + 4];
    size_t count;
} column_list;

static sj_slice slice_of(const char *text)
{
    return (sj_slice){.data = (const uint8_t *)text, .size = strlen(text)};
}

static void add_column(sj_clickhouse_block *block, column_list *list, const char *name,
                       const char *type, const sj_byte_buffer *extra, const sj_byte_buffer *data)
{
    sj_row_put_text(&block->headers, slice_of(name));
    sj_row_put_text(&block->headers, slice_of(type));
    list->columns[list->count++] =
        (block_column){.header_end = block->headers.size, .extra = extra, .data = data};
}

static size_t count_columns(const sj_forward_table *table)
{
    size_t count = 3;
    for (const sj_forward_column *column = table->columns; column->name != NULL; ++column) {
        count += column->kind == SJ_FORWARD_HISTOGRAM ? 2 : 1;
    }
    return count;
}

static void add_piece(sj_clickhouse_block *block, const uint8_t *data, size_t size)
{
    if (size != 0) {
        block->pieces[block->count++] = (sj_slice){.data = data, .size = size};
    }
}

sj_status sj_clickhouse_block_make(sj_clickhouse_block *block, const sj_forward_table *table,
                                   const sj_native_rows *rows)
{
    column_list list = {0};
    *block = (sj_clickhouse_block){0};
    sj_byte_buffer_put_varint(&block->headers, count_columns(table));
    sj_byte_buffer_put_varint(&block->headers, rows->rows);
    add_column(block, &list, table->owner, "FixedString(32)", NULL, &rows->owners);
    add_column(block, &list, "version", "UInt64", NULL, &rows->versions);
    add_column(block, &list, "day", "Date", NULL, &rows->days);
    for (size_t i = 0; table->columns[i].name != NULL; i++) {
        const sj_native_column *column = &rows->columns[i];
        const sj_forward_kind kind = table->columns[i].kind;
        if (kind == SJ_FORWARD_HISTOGRAM) {
            add_column(block, &list, "bins", "Array(UInt16)", &column->extra, &column->data);
            add_column(block, &list, "counts", "Array(UInt64)", &column->extra, &rows->counts);
        } else {
            add_column(block, &list, table->columns[i].name, sj_clickhouse_type(kind),
                       kind == SJ_FORWARD_MAYBE ? &column->extra : NULL, &column->data);
        }
    }
    size_t at = 0;
    for (size_t i = 0; i < list.count && !block->headers.failed; i++) {
        const block_column *column = &list.columns[i];
        add_piece(block, block->headers.bytes + at, column->header_end - at);
        at = column->header_end;
        if (column->extra != NULL) {
            add_piece(block, column->extra->bytes, column->extra->size);
        }
        add_piece(block, column->data->bytes, column->data->size);
    }
    return block->headers.failed || sj_native_rows_failed(rows) ? SJ_ENOMEM : SJ_OK;
}

void sj_clickhouse_block_deinit(sj_clickhouse_block *block)
{
    sj_byte_buffer_deinit(&block->headers);
}
