/* Design notes
 *
 * For each method that the filter selects, the runtime compiles a counter per instruction. The
 * agent reads the counters by the MonoMethod*, which must not be freed. So the filter selects only
 * methods of the root domain, which exist until the runtime shuts down. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/link/conversation.h"
#include "agent/inproc/recorder/recorder.h"

/* 1 if the method at the same index of sj_mono_methods has counters. */
static uint8_t has_counters[SJ_MONO_METHODS_CAPACITY];

/* Words of the next report. Only the thread that shuts the runtime down uses them. */
static uint32_t words[SJ_LINK_LINES_WORDS];
static uint32_t word_count;
static uint32_t count_index; /* Index of the word that counts the offsets of the current method. */
static uint32_t function_read;

/* The runtime's coverage filter: returns 1 if the method gets counters. */
static uint32_t choose_counters(void *ours, void *method)
{
    (void)ours;
    if (!sj_recorder_is_armed() || !sj_recorder_may_call() || !sj_mono_can_hook(method)) {
        return 0;
    }
    const sj_mono_selection selection = sj_mono_selection_of(method);
    if (selection.function == 0 || !selection.has_lines ||
        !sj_mono_set_method(method, selection.function)) {
        return 0;
    }
    has_counters[sj_mono_find_method(method) - sj_mono_methods] = 1;
    return 1;
}

static void begin_method(void)
{
    words[word_count] = function_read;
    count_index = word_count + 1;
    words[count_index] = 0;
    word_count += 2;
}

static void add_instruction(void *ours, const sj_mono_coverage *data)
{
    (void)ours;
    if (data->count == 0) {
        return;
    }
    if (word_count == SJ_LINK_LINES_WORDS) {
        sj_conversation_report_lines(words, word_count, false);
        word_count = 0;
        begin_method();
    }
    words[word_count++] = data->offset;
    words[count_index]++;
}

static void on_shutdown(void *ours)
{
    (void)ours;
    if (!sj_recorder_is_armed() || !sj_recorder_may_call()) {
        return;
    }
    for (uint32_t i = 0; i < SJ_MONO_METHODS_CAPACITY; i++) {
        function_read = atomic_load(&sj_mono_methods[i].function);
        if (has_counters[i] == 0 || function_read == 0) {
            continue;
        }
        if (word_count + 3 > SJ_LINK_LINES_WORDS) {
            sj_conversation_report_lines(words, word_count, false);
            word_count = 0;
        }
        begin_method();
        (void)sj_mono_runtime.coverage_data(
            sj_mono_profiler(), (void *)(uintptr_t)atomic_load(&sj_mono_methods[i].method),
            add_instruction);
    }
    sj_conversation_report_lines(words, word_count, true);
}

bool sj_mono_count_lines(void)
{
    if (sj_mono_runtime.enable_coverage() == 0) {
        return false;
    }
    sj_mono_runtime.set_coverage_filter(sj_mono_profiler(), choose_counters);
    sj_mono_runtime.set_shutdown_begin(sj_mono_profiler(), on_shutdown);
    return true;
}
