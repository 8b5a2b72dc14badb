/* Design notes
 *
 * The runtime has a counter for each instruction of a method that it compiles with counters, and
 * knows them by the method: one that was freed must not be asked about. So only methods of the root
 * domain have counters, which is there until the runtime shuts down. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/recorder/recorder.h"

static uint8_t has_counters[SJ_MONO_METHODS_ROOM]; /* by the place in sj_mono_methods */

/* What is reported next; used while the runtime shuts down, by one thread. */
static uint32_t words[SJ_LINK_LINES_WORDS];
static uint32_t word_count;
static uint32_t count_place; /* of the number of offsets of the method that is read */
static uint32_t function_read;

static uint32_t choose_counters(void *ours, void *method)
{
    (void)ours;
    if (!sj_recorder_is_armed() || !sj_recorder_may_call() || !sj_mono_can_hook(method)) {
        return 0;
    }
    const sj_mono_wish wish = sj_mono_wish_of(method);
    if (wish.function == 0 || !wish.has_lines || !sj_mono_set_method(method, wish.function)) {
        return 0;
    }
    has_counters[sj_mono_find_method(method) - sj_mono_methods] = 1;
    return 1;
}

static void begin_method(void)
{
    words[word_count] = function_read;
    count_place = word_count + 1;
    words[count_place] = 0;
    word_count += 2;
}

static void take_instruction(void *ours, const sj_mono_coverage *data)
{
    (void)ours;
    if (data->count == 0) {
        return;
    }
    if (word_count == SJ_LINK_LINES_WORDS) {
        sj_mono_add_lines(words, word_count, false);
        word_count = 0;
        begin_method();
    }
    words[word_count++] = data->offset;
    words[count_place]++;
}

static void on_shutdown(void *ours)
{
    (void)ours;
    if (!sj_recorder_is_armed() || !sj_recorder_may_call()) {
        return;
    }
    for (uint32_t i = 0; i < SJ_MONO_METHODS_ROOM; i++) {
        function_read = atomic_load(&sj_mono_methods[i].function);
        if (has_counters[i] == 0 || function_read == 0) {
            continue;
        }
        if (word_count + 3 > SJ_LINK_LINES_WORDS) {
            sj_mono_add_lines(words, word_count, false);
            word_count = 0;
        }
        begin_method();
        (void)sj_mono_runtime.coverage_data(
            sj_mono_profiler(), (void *)(uintptr_t)atomic_load(&sj_mono_methods[i].method),
            take_instruction);
    }
    sj_mono_add_lines(words, word_count, true);
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
