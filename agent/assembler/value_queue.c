#include "agent/assembler/value_queue.h"

enum { PART_BYTES = 8, MOST_TEXT_BYTES = 4 * SJ_VALUE_QUEUE * SJ_VALUE_TEXT_MOST };

static void drop(sj_value_queue *queue, size_t place)
{
    queue->count--;
    memmove(&queue->items[place], &queue->items[place + 1],
            (queue->count - place) * sizeof(queue->items[0]));
}

/* Returns the index of the waiting value that a record belongs to; `queue->count` if there is
 * none. */
static size_t find(const sj_value_queue *queue, uint32_t function, uint32_t stack,
                   uint8_t descriptor, bool is_changed)
{
    size_t i = 0;
    while (i < queue->count &&
           (queue->items[i].is_changed != is_changed || queue->items[i].function != function ||
            queue->items[i].stack != stack || queue->items[i].value.descriptor != descriptor)) {
        i++;
    }
    return i;
}

/* Removes all values whose text is in the store. */
static void drop_texts(sj_value_queue *queue)
{
    for (size_t i = queue->count; i-- > 0;) {
        if (queue->items[i].text != NULL) {
            drop(queue, i);
            queue->lost++;
        }
    }
}

/* Copies the texts of waiting values to a new store. If there is no memory, removes these
 * values. */
static sj_status compact(sj_value_queue *queue)
{
    sj_text_store kept = {0};
    for (size_t i = 0; i < queue->count; i++) {
        sj_waiting_call_value *item = &queue->items[i];
        char *text = NULL;
        if (item->text == NULL) {
            continue;
        }
        if (sj_text_store_add(&kept, item->value.text_bytes, &text) != SJ_OK) {
            sj_text_store_deinit(&kept);
            drop_texts(queue);
            sj_text_store_clear(&queue->texts);
            return SJ_ENOMEM;
        }
        memcpy(text, item->text, item->value.text_bytes);
        item->text = text;
        item->value.text = text;
    }
    sj_text_store_deinit(&queue->texts);
    queue->texts = kept;
    return SJ_OK;
}

void sj_value_queue_deinit(sj_value_queue *queue)
{
    sj_text_store_deinit(&queue->texts);
    queue->count = 0;
}

void sj_value_queue_clear(sj_value_queue *queue)
{
    queue->lost += queue->count;
    queue->count = 0;
}

/* Starts a value with its first record. Only texts have more than one. */
static bool begin(sj_value_queue *queue, sj_waiting_call_value *item, uint64_t bits)
{
    const uint32_t kind = sj_value_kind_of(item->value.descriptor);
    if (!sj_value_is_text(kind)) {
        item->value.bits = sj_value_narrow(kind, bits);
        return true;
    }
    const uint64_t length = sj_value_text_length(bits);
    const uint32_t note = sj_value_text_note(bits);
    if (length > SJ_VALUE_TEXT_MOST || note > SJ_VALUE_NULL ||
        (queue->texts.total_bytes > MOST_TEXT_BYTES && compact(queue) != SJ_OK) ||
        sj_text_store_add(&queue->texts, (size_t)length, &item->text) != SJ_OK) {
        return false;
    }
    item->value.note = (uint8_t)note;
    item->value.text = item->text;
    item->value.text_bytes = (uint16_t)length;
    item->missing = (uint16_t)length;
    return true;
}

static bool add_text(sj_waiting_call_value *item, const sj_record *record)
{
    const uint16_t bytes = item->missing < PART_BYTES ? item->missing : PART_BYTES;
    if (bytes == 0) {
        return false;
    }
    memcpy(item->text + item->value.text_bytes - item->missing, record->bytes, bytes);
    item->missing = (uint16_t)(item->missing - bytes);
    return true;
}

/* Notes which rule changed a value. */
static bool add_rule(sj_waiting_call_value *item, uint64_t rule)
{
    if (rule >= SJ_VALUE_RULES) {
        return false;
    }
    item->value.rule = (uint16_t)(rule + 1);
    return true;
}

bool sj_value_queue_add(sj_value_queue *queue, const sj_record *record)
{
    const uint32_t function = sj_record_tag(record) & SJ_RECORD_FUNCTION_MASK;
    const uint32_t stack = sj_record_value_stack(record) & SJ_RECORD_VALUE_STACK_MASK;
    const uint8_t descriptor = record->bytes[11];
    const sj_record_part part = sj_record_part_of(record);
    const bool is_changed = part == SJ_PART_CHANGED || part == SJ_PART_RULE;
    if (queue->count == 0) {
        sj_text_store_clear(&queue->texts);
    }
    const size_t place = find(queue, function, stack, descriptor, is_changed);
    if (part == SJ_PART_RULE) {
        return place < queue->count && add_rule(&queue->items[place], sj_record_value(record));
    }
    if (part == SJ_PART_TEXT) {
        return place < queue->count && add_text(&queue->items[place], record);
    }
    sj_waiting_call_value item = {.function = function,
                                  .stack = stack,
                                  .is_changed = is_changed,
                                  .value = {.descriptor = descriptor}};
    if ((part != SJ_PART_VALUE && !is_changed) || !sj_value_is_sound(descriptor) ||
        !begin(queue, &item, sj_record_value(record))) {
        return false;
    }
    if (place < queue->count) {
        drop(queue, place);
    } else if (queue->count == SJ_VALUE_QUEUE) {
        drop(queue, 0);
        queue->lost++;
    }
    queue->items[queue->count++] = item;
    return true;
}

bool sj_value_queue_pop(sj_value_queue *queue, uint32_t function, uint64_t stack, bool at_entry,
                        sj_block_value *value)
{
    for (size_t i = 0; i < queue->count;) {
        const sj_waiting_call_value *item = &queue->items[i];
        const bool is_at_exit = sj_value_is_at_exit(item->value.descriptor);
        if (item->function != function || is_at_exit == at_entry ||
            item->stack != ((uint32_t)stack & SJ_RECORD_VALUE_STACK_MASK)) {
            i++;
            continue;
        }
        const bool is_whole = item->missing == 0 && item->is_changed == (item->value.rule != 0);
        *value = item->value;
        drop(queue, i);
        if (is_whole) {
            return true;
        }
        queue->lost++;
    }
    return false;
}
