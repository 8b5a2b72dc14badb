/* Stores values of arguments and results as rows. */
#include "collector-server/store/store_internal.h"

#include "collector-server/store/enum_text.h"
#include "proto/base/utf8_text.h"

#include <stdio.h>
#include <string.h>

/* True if the bytes are text that SQLite and JSON can hold: well-formed UTF-8 without NUL. */
static bool is_utf8(const char *text, size_t bytes)
{
    return bytes == 0 ||
           (memchr(text, 0, bytes) == NULL && sj_utf8_escape(text, bytes, NULL) == bytes);
}

/* Returns the length of the text without a character that was cut in the middle. */
static size_t whole_characters(const sj_block_value *value)
{
    size_t bytes = value->text_bytes;
    while (value->note == SJ_VALUE_CUT && bytes > 0 && value->text_bytes - bytes < 4 &&
           !is_utf8(value->text, bytes)) {
        bytes--;
    }
    return is_utf8(value->text, bytes) ? bytes : value->text_bytes;
}

static int bind_text(sqlite3_stmt *row, int place, const sj_block_value *value)
{
    if (value->note == SJ_VALUE_UNREADABLE || value->note == SJ_VALUE_NULL) {
        return sqlite3_bind_null(row, place);
    }
    const size_t bytes = whole_characters(value);
    return is_utf8(value->text, bytes)
               ? sqlite3_bind_text(row, place, value->text, (int)bytes, SQLITE_TRANSIENT)
               : sqlite3_bind_blob(row, place, value->text, (int)bytes, SQLITE_TRANSIENT);
}

static int bind_real(sqlite3_stmt *row, int place, const sj_block_value *value)
{
    double real;
    float single;
    memcpy(&real, &value->bits, sizeof(real));
    memcpy(&single, &value->bits, sizeof(single));
    real = sj_value_kind_of(value->descriptor) == SJ_VALUE_FLOAT ? (double)single : real;
    /* SQLite would store NaN as NULL */
    return real == real ? sqlite3_bind_double(row, place, real)
                        : sqlite3_bind_text(row, place, "nan", -1, SQLITE_STATIC);
}

static int bind_value(sqlite3_stmt *row, int place, const sj_block_value *value)
{
    const uint32_t kind = sj_value_kind_of(value->descriptor);
    char text[24];
    if (sj_value_is_text(kind)) {
        return bind_text(row, place, value);
    }
    if (sj_value_is_real(kind)) {
        return bind_real(row, place, value);
    }
    if (kind == SJ_VALUE_HEX || kind == SJ_VALUE_POINTER) {
        snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value->bits);
    } else if (!sj_value_is_signed(kind) && value->bits > INT64_MAX) {
        snprintf(text, sizeof(text), "%llu", (unsigned long long)value->bits);
    } else {
        return sqlite3_bind_int64(row, place, (int64_t)value->bits);
    }
    return sqlite3_bind_text(row, place, text, -1, SQLITE_TRANSIENT);
}

static bool is_cost(const sj_block_value *value)
{
    return sj_value_kind_of(value->descriptor) == SJ_VALUE_COST;
}

/* The columns of call_costs after is_nested. */
static const uint8_t cost_columns[] = {SJ_COST_CPU_NS,
                                       SJ_COST_SELF_NS,
                                       SJ_COST_ALLOCATIONS,
                                       SJ_COST_ALLOCATED_BYTES,
                                       SJ_COST_FREES,
                                       SJ_COST_FREED_BYTES,
                                       SJ_COST_SELF_ALLOCATIONS,
                                       SJ_COST_SELF_ALLOCATED_BYTES,
                                       SJ_COST_SELF_FREES,
                                       SJ_COST_SELF_FREED_BYTES};
enum { FIRST_COST = 5 };

/* Stores the costs of a call, from the value at `*place` on. Moves `*place` to the last of these
 * values. */
static sj_status add_cost(sj_statements *sql, const sj_session_state *state, int64_t stream_id,
                          const sj_block *block, size_t *place, sj_error *error)
{
    const sj_block_value *first = &block->values[*place];
    uint64_t costs[SJ_COSTS] = {0};
    uint32_t known = 0;
    int64_t function_id = 0;
    size_t next = *place;
    for (; next < block->value_count && is_cost(&block->values[next]) &&
           block->values[next].call_index == first->call_index;
         next++) {
        const uint32_t position = sj_value_position(block->values[next].descriptor);
        if (position < SJ_COSTS) {
            costs[position] = block->values[next].bits;
            known |= UINT32_C(1) << position;
        }
    }
    *place = next - 1;
    if (costs[SJ_COST_FUNCTION] > UINT32_MAX ||
        !sj_session_function_id(state, (uint32_t)costs[SJ_COST_FUNCTION], &function_id)) {
        return sj_fail(error, SJ_ECORRUPT, "a cost of no call");
    }
    SJ_TRY(SJ_START(sql, cost_add, error, .session_id = state->session_id,
                    .call_id = sj_call_id_of((uint64_t)stream_id, first->call_index),
                    .function_id = function_id, .is_nested = (costs[SJ_COST_NESTED] != 0)));
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_COST_ADD);
    for (size_t i = 0; i < sizeof(cost_columns); i++) {
        const uint64_t cost = costs[cost_columns[i]];
        const int at = FIRST_COST + (int)i;
        const int bound = (known >> cost_columns[i] & 1) != 0 && cost <= INT64_MAX
                              ? sqlite3_bind_int64(row, at, (int64_t)cost)
                              : sqlite3_bind_null(row, at);
        if (bound != SQLITE_OK) {
            return sj_fail(error, SJ_ENOMEM, "no memory for a cost");
        }
    }
    const sj_status status = sj_sql_step(sql, SJ_SQL_COST_ADD, error);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

sj_status sj_store_add_values(sj_statements *sql, const sj_session_state *state, int64_t stream_id,
                              const sj_block *block, sj_error *error)
{
    enum { VALUE_PLACE = 6 };
    for (size_t i = 0; i < block->value_count; i++) {
        const sj_block_value *value = &block->values[i];
        if (is_cost(value)) {
            SJ_TRY(add_cost(sql, state, stream_id, block, &i, error));
            continue;
        }
        const char *rule = value->rule != 0 ? block->rules->names[value->rule - 1] : "";
        rule = is_utf8(rule, strlen(rule)) ? rule : "unknown";
        SJ_TRY(SJ_START(sql, value_add, error, .session_id = state->session_id,
                        .call_id = sj_call_id_of((uint64_t)stream_id, value->call_index),
                        .position = sj_value_position(value->descriptor),
                        .kind = sj_text_of_value_kind(sj_value_kind_of(value->descriptor)),
                        .rule = rule, .value = 0, .note = sj_text_of_value_note(value->note)));
        if (bind_value(sj_sql_row(sql, SJ_SQL_VALUE_ADD), VALUE_PLACE, value) != SQLITE_OK) {
            return sj_fail(error, SJ_ENOMEM, "no memory for a value");
        }
        const sj_status status = sj_sql_step(sql, SJ_SQL_VALUE_ADD, error);
        SJ_TRY(status == SJ_ENOTFOUND ? SJ_OK : status);
    }
    return SJ_OK;
}
