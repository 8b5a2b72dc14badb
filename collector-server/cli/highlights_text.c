#include "collector-server/cli/highlights_text.h"

#include "collector-server/cli/function_name.h"
#include "collector-server/cli/shell_word.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"

#include <string.h>

enum { NAME_COLUMNS = 60, FRAME_COLUMNS = 30 };

static void print_crash(FILE *file, const sj_session_highlights *highlights)
{
    char name[SJ_FUNCTION_NAME_BYTES];
    const char *signal = sigabbrev_np(highlights->crash_signal);
    fprintf(file, "  crashed    by signal %d%s%s%s", highlights->crash_signal,
            signal != NULL ? ", SIG" : "", signal != NULL ? signal : "",
            highlights->core_dumped ? " (core dumped)" : "");
    for (uint32_t i = 0; i < highlights->frame_count; i++) {
        fprintf(file, "%s%s", i == 0 ? "; in " : ", called by ",
                sj_function_name_fit(highlights->frames[i], FRAME_COLUMNS, name));
    }
    if (highlights->deeper_frames != 0) {
        fprintf(file, " and %llu more", (unsigned long long)highlights->deeper_frames);
    }
    fputc('\n', file);
}

static void print_zombies(FILE *file, const sj_session_highlights *highlights, const char *path)
{
    fprintf(file, "  zombies    %llu reported, of freed or overrun memory: sojourn zombies %s\n",
            (unsigned long long)highlights->zombie_reports, path);
}

static void print_coverage(FILE *file, const sj_session_highlights *highlights)
{
    char text[SJ_ZOMBIE_COVERAGE_BYTES];
    fprintf(file, "  memory     %s\n", sj_zombie_coverage_text(&highlights->coverage, text));
}

static void print_unwatched(FILE *file, const sj_session_highlights *highlights)
{
    char reason[SJ_FUNCTION_NAME_BYTES];
    fprintf(file, "  memory     not watched in %s: %s\n",
            SJ_COUNTED(highlights->unwatched_processes, "process"),
            sj_function_name_fit(highlights->not_watched, 0, reason));
}

static void print_functions(FILE *file, const sj_session_highlights *highlights, uint32_t lines)
{
    char name[SJ_FUNCTION_NAME_BYTES];
    char duration[SJ_DURATION_TEXT_BYTES + 1];
    for (uint32_t i = 0; i < highlights->function_count && i < lines; i++) {
        const sj_highlight_function *function = &highlights->functions[i];
        duration[0] = '~';
        sj_format_duration(function->self_ns, duration + function->is_estimate);
        fprintf(file, "  %-9s %5.1f %% %9s self %10lld calls  %s\n", i == 0 ? "most time" : "",
                100.0 * (double)function->self_ns / (double)highlights->self_ns, duration,
                (long long)function->calls,
                sj_function_name_fit(function->name, NAME_COLUMNS, name));
    }
}

void sj_highlights_print(FILE *file, const sj_session_highlights *highlights, bool crashed,
                         const char *path, uint32_t lines)
{
    char quoted[512];
    const char *word = sj_shell_word(path, quoted, sizeof(quoted));
    const bool shows_crash = crashed && highlights->crash_signal != 0;
    const bool shows_zombies = highlights->zombie_reports != 0 && word != NULL;
    const uint32_t others = (uint32_t)shows_crash + (uint32_t)shows_zombies +
                            (uint32_t)highlights->was_watched +
                            (uint32_t)(highlights->unwatched_processes != 0) +
                            2 * (uint32_t)(highlights->unrecorded.percent != 0) +
                            (uint32_t)(highlights->unnamed.unnamed != 0) + (word != NULL);
    if (shows_crash) {
        print_crash(file, highlights);
    }
    if (shows_zombies) {
        print_zombies(file, highlights, word);
    }
    if (highlights->was_watched) {
        print_coverage(file, highlights);
    }
    if (highlights->unwatched_processes != 0) {
        print_unwatched(file, highlights);
    }
    print_functions(file, highlights, lines > others ? lines - others : 0);
    sj_unrecorded_code_print(file, &highlights->unrecorded, "  elsewhere  ", "             ");
    sj_unnamed_functions_print(file, &highlights->unnamed, "  names      ");
    if (word != NULL) {
        fprintf(file, "  next       sojourn report %s; tree, replay and ui read it, too\n", word);
    }
}
