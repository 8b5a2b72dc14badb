#include "agent/assembler/call_values.h"

#include "agent/assembler/tail_calls.h"

#include <string.h>

/* Stores a value once for each typed value of the function at the same place. Sets `*is_known` if
 * there is one. Texts are stored as texts, wherever the probe found them. */
static sj_status store_typed(sj_call_stack *stream, const sj_typed_function *typed,
                             const sj_block_value *value, bool *is_known)
{
    const bool is_text = sj_value_kind_of(value->descriptor) == SJ_VALUE_STRING;
    for (size_t i = 0; i < typed->count; i++) {
        const sj_typed_value *of = &typed->values[i];
        const bool is_its =
            of->is_behind ? of->place == value->descriptor
            : is_text     ? sj_value_position(of->place) == sj_value_position(value->descriptor) &&
                            sj_value_kind_of(of->descriptor) == SJ_VALUE_STRING
                      : of->place == value->descriptor;
        if (of->place != 0 && is_its) {
            sj_block_value kept;
            char number[SJ_TYPED_NUMBER_BYTES];
            *is_known = true;
            SJ_TRY(sj_typed_value_convert(of, value, &kept, number)
                       ? sj_call_stack_value(stream, &kept)
                       : SJ_OK);
        }
    }
    return SJ_OK;
}

/* True if the value of a managed method is stored with the kind that the agent recorded. */
static bool has_own_type(const sj_typed_function *typed, const sj_block_value *value)
{
    return (typed->own_positions >> sj_value_position(value->descriptor) & 1) != 0;
}

static sj_status add_cost(sj_call_stack *stream, sj_block_value *value, sj_value_cost cost,
                          uint64_t bits)
{
    value->descriptor = sj_value_descriptor(cost, SJ_VALUE_COST);
    value->bits = bits;
    return sj_call_stack_value(stream, value);
}

/* Handles a counter's reading at an entry or an exit. The exit adds the cost values of the call. */
static sj_status store_cost(sj_call_stack *stream, uint32_t function, sj_block_value *value)
{
    sj_call_cost cost;
    const uint32_t position = sj_value_position(value->descriptor);
    const sj_cost_counter counter = (sj_cost_counter)(position / 2);
    if (counter >= SJ_COUNTERS) {
        return SJ_OK;
    }
    if (!sj_value_is_at_exit(value->descriptor)) {
        const sj_costly_call call = {
            .call_index = value->call_index, .function = function, .depth = stream->depth};
        return sj_call_costs_enter(&stream->costs, &call, counter, value->bits);
    }
    if (!sj_call_costs_leave(&stream->costs, value->call_index, counter, value->bits, &cost)) {
        return SJ_OK;
    }
    const bool is_cpu = counter == SJ_COUNTER_CPU_NS;
    const uint32_t memory = counter - (uint32_t)SJ_COUNTER_ALLOCATED_BYTES;
    if (cost.is_first) {
        SJ_TRY(add_cost(stream, value, SJ_COST_FUNCTION, function));
        SJ_TRY(add_cost(stream, value, SJ_COST_NESTED, cost.is_nested));
    }
    SJ_TRY(add_cost(stream, value, is_cpu ? SJ_COST_CPU_NS : SJ_COST_ALLOCATED_BYTES + memory,
                    cost.all));
    return add_cost(stream, value, is_cpu ? SJ_COST_SELF_NS : SJ_COST_SELF_ALLOCATED_BYTES + memory,
                    cost.self);
}

/* Stores a value without a rule, once per descriptor that rules without a condition ask for. Stores
 * it again for each rule whose condition it meets. If the function has types, they decide what is
 * stored without a rule; a value that they do not describe is lost. */
static sj_status store_value(sj_call_stack *stream, uint32_t function, uint64_t ticks,
                             sj_block_value *value)
{
    const sj_value_rules *rules = stream->context->value_rules;
    const sj_assembler_sink *sink = &stream->context->sink;
    if (sj_value_kind_of(value->descriptor) == SJ_VALUE_THROWN) {
        return sj_call_stack_value(stream, value);
    }
    if (sj_value_kind_of(value->descriptor) == SJ_VALUE_COST) {
        return store_cost(stream, function, value);
    }
    if (value->rule != 0) { /* a rule changed the value */
        const bool is_known = rules != NULL && value->rule <= rules->count;
        return is_known ? sj_call_stack_value(stream, value) : SJ_OK;
    }
    if (rules == NULL) {
        return sj_call_stack_value(stream, value);
    }
    const sj_rule_set kept = sink->value(sink->context, function, value, ticks);
    const sj_typed_function *typed = sj_value_rules_typed(rules, function);
    const bool is_native = typed != NULL && typed->own_positions == 0;
    bool is_known = !is_native;
    uint8_t seen[SJ_VALUE_RULES + 1]; /* descriptors of values that are stored without a rule */
    size_t count = 0;
    if (is_native) {
        SJ_TRY(store_typed(stream, typed, value, &is_known));
    } else if (typed != NULL && has_own_type(typed, value)) {
        seen[count++] = value->descriptor;
        SJ_TRY(sj_call_stack_value(stream, value));
    }
    SJ_EACH_RULE (i, &kept) {
        const uint8_t stored = rules->items[i].stored;
        const bool has_name =
            sj_value_rule_has_condition(&rules->items[i]) && !rules->items[i].changes;
        const bool is_wanted = has_name || (!is_native && memchr(seen, stored, count) == NULL);
        if (is_wanted) {
            value->rule = has_name ? (uint16_t)(i + 1) : 0;
            value->descriptor = stored;
            if (!has_name) {
                seen[count++] = stored;
            }
            SJ_TRY(sj_call_stack_value(stream, value));
        } else if (!is_known && !rules->items[i].changes) {
            stream->context->counters.lost_values++;
            is_known = true; /* so that the value counts as lost only once */
        }
    }
    return SJ_OK;
}

/* The values of an entry or exit; at an exit, the values of the entry come first. */
typedef struct call_values {
    size_t count;
    sj_block_value items[2 * SJ_VALUE_QUEUE];
} call_values;

/* Stores the values that each rule in `met` is about, under the rule's name. */
static sj_status store_matched(sj_call_stack *stream, const sj_rule_set *met,
                               const call_values *all)
{
    const sj_value_rules *rules = stream->context->value_rules;
    SJ_EACH_RULE (i, met) {
        const sj_value_rule *rule = &rules->items[i];
        for (size_t j = 0; j < all->count; j++) {
            if (all->items[j].rule == 0 && all->items[j].descriptor == rule->descriptor) {
                sj_block_value value = all->items[j];
                value.descriptor = rule->stored;
                value.rule = (uint16_t)(i + 1);
                SJ_TRY(sj_call_stack_value(stream, &value));
            }
        }
    }
    return SJ_OK;
}

/* Returns the frame of a call that was just entered or left; NULL if it is not found. The frame of
 * a call that was left comes after the open ones in the array, and after frames that had jumped to
 * it. */
static const sj_stack_frame *frame_of(const sj_call_stack *stream, uint64_t call_index)
{
    const uint32_t last = stream->depth + SJ_TAIL_CHAIN;
    for (uint32_t i = stream->depth > 0 ? stream->depth - 1 : 0;
         i <= last && i < stream->frame_capacity; i++) {
        if (stream->frames[i].call_index == call_index) {
            return &stream->frames[i];
        }
    }
    return NULL;
}

/* Returns the call that jumped to a call that just returned, and ended with it; NULL: none. The
 * result of the callee is also the result of the call that jumped. */
static const sj_stack_frame *jumped_to(const sj_call_stack *stream, const sj_stack_frame *frame)
{
    return frame != NULL && frame > stream->frames + stream->depth && frame[-1].jumped_ticks != 0
               ? &frame[-1]
               : NULL;
}

/* Keeps the values of an entry until the exit. */
static sj_status push_late(sj_call_stack *stream, uint64_t call_index, const call_values *all)
{
    const sj_status status =
        sj_late_values_push(&stream->late, call_index, stream->depth, all->items, all->count);
    if (status == SJ_EFULL) {
        stream->context->counters.lost_values += all->count;
        return SJ_OK;
    }
    return status;
}

/* Evaluates the rules with conditions on the whole call. At the entry it evaluates the rules that
 * need nothing of the exit. At the exit it evaluates the others, with the values of both. */
static sj_status evaluate_call_rules(sj_call_stack *stream, const sj_valued_moment *moment,
                                     call_values *all, size_t own)
{
    const sj_assembler_sink *sink = &stream->context->sink;
    const sj_stack_frame *frame = frame_of(stream, moment->call_index);
    if (frame == NULL || sink->call == NULL) {
        return SJ_OK;
    }
    const ptrdiff_t depth = frame - stream->frames;
    const sj_assembled_call call = {.function = moment->function,
                                    .caller = depth > 0 ? frame[-1].function : 0,
                                    .caller_of_caller = depth > 1 ? frame[-2].function : 0,
                                    .at_exit = !moment->at_entry,
                                    .start_ticks = frame->start_ticks,
                                    .now_ticks = moment->ticks,
                                    .values = all->items,
                                    .value_count = all->count};
    const sj_rule_set met = sink->call(sink->context, &call);
    SJ_TRY(store_matched(stream, &met, all));
    return moment->at_entry && own != 0 ? push_late(stream, moment->call_index, all) : SJ_OK;
}

static void pop_late(sj_call_stack *stream, uint64_t call_index, call_values *all)
{
    const sj_block_value *late;
    const size_t count = sj_late_values_pop(&stream->late, call_index, &late);
    all->count = count < SJ_VALUE_QUEUE ? count : SJ_VALUE_QUEUE;
    for (size_t i = 0; i < all->count; i++) {
        all->items[i] = late[i];
    }
}

/* True if a call returned the value. False for costs, exceptions and values that a rule set. */
static bool is_result(const sj_block_value *value)
{
    const uint32_t kind = sj_value_kind_of(value->descriptor);
    return value->rule == 0 && kind != SJ_VALUE_COST && kind != SJ_VALUE_THROWN;
}

/* Stores the results of an exit also for a call that had jumped there, as far as rules about that
 * call's function ask for them. */
static sj_status store_results_of(sj_call_stack *stream, sj_valued_moment jumped,
                                  const call_values *results, bool has_call_rules)
{
    call_values all = {.count = 0};
    if (has_call_rules) {
        pop_late(stream, jumped.call_index, &all);
    }
    for (size_t i = 0; i < results->count; i++) {
        sj_block_value value = results->items[i];
        value.call_index = jumped.call_index;
        if (all.count < 2 * SJ_VALUE_QUEUE) {
            all.items[all.count++] = value;
        }
        SJ_TRY(store_value(stream, jumped.function, jumped.ticks, &value));
    }
    return has_call_rules ? evaluate_call_rules(stream, &jumped, &all, 0) : SJ_OK;
}

/* Stores the results of an exit for all calls of the chain that had jumped there. */
static sj_status store_results(sj_call_stack *stream, const sj_valued_moment *moment,
                               const call_values *results, bool has_call_rules)
{
    const sj_stack_frame *frame =
        stream->context->value_rules != NULL ? frame_of(stream, moment->call_index) : NULL;
    for (frame = jumped_to(stream, frame); frame != NULL; frame = jumped_to(stream, frame)) {
        sj_valued_moment jumped = *moment;
        jumped.call_index = frame->call_index;
        jumped.function = frame->function;
        SJ_TRY(store_results_of(stream, jumped, results, has_call_rules));
    }
    return SJ_OK;
}

/* True if the call has just ended by a tail call. Its rules are evaluated when the callee of the
 * jump returns, with the callee's result. */
static bool stays_open(const sj_call_stack *stream, const sj_valued_moment *moment)
{
    return !moment->at_entry && sj_call_stack_has_jumped(stream) &&
           stream->frames[stream->depth - 1].call_index == moment->call_index;
}

sj_status sj_call_values_store(sj_call_stack *stream, sj_value_queue *queue,
                               const sj_valued_moment *moment)
{
    const bool has_call_rules =
        sj_value_rules_evaluate_calls(stream->context->value_rules) && !stays_open(stream, moment);
    call_values all;
    call_values results;
    sj_block_value value;
    size_t own = 0;
    bool has_values = false;
    all.count = 0;
    results.count = 0;
    while (sj_value_queue_pop(queue, moment->function, moment->stack, moment->at_entry, &value)) {
        if (has_call_rules && !moment->at_entry &&
            !has_values) { /* the values of the entry come first */
            pop_late(stream, moment->call_index, &all);
        }
        has_values = true;
        value.call_index = moment->call_index;
        if (has_call_rules && all.count < 2 * SJ_VALUE_QUEUE && value.rule == 0) {
            all.items[all.count++] = value;
            own++;
        }
        if (!moment->at_entry && results.count < 2 * SJ_VALUE_QUEUE && is_result(&value)) {
            results.items[results.count++] = value;
        }
        SJ_TRY(store_value(stream, moment->function, moment->ticks, &value));
    }
    SJ_TRY(has_call_rules && has_values ? evaluate_call_rules(stream, moment, &all, own) : SJ_OK);
    return results.count != 0 ? store_results(stream, moment, &results, has_call_rules) : SJ_OK;
}
