/* Plans modules. Prints how many functions each technique hooks, and why the others are not hooked.
 * Prints the CPU time and the elapsed time on one thread, and both on as many threads as the
 * planner uses by default. The two runs alternate. Usage: planner_bench [--reasons] FILE... */
#include "agent/abi/skip_text.h"
#include "agent/planner/planner.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3, SKIPS = SJ_SKIP_MODULE + 1, TECHNIQUES = SJ_TECHNIQUE_RUNTIME + 1 };

typedef struct tally {
    unsigned techniques[TECHNIQUES];
    unsigned skips[SKIPS];
    unsigned planned;   /* functions that a technique was tried on */
    unsigned ruled;     /* functions that a rule excludes */
    double make_ms;     /* CPU time on one thread */
    double wall_ms;     /* elapsed time on one thread */
    double parallel_ms; /* elapsed time on all threads */
    double parallel_cpu_ms;
    double cached_ms;
    double text_mb;
} tally;

static double now_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

typedef struct times {
    double cpu_ms;
    double wall_ms;
} times;

static bool run(const sj_planner_options *options, sj_plan *plan, times *took)
{
    sj_error error = {0};
    const double start = now_ms(CLOCK_MONOTONIC);
    const double cpu_start = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (sj_plan_make(options, plan, &error) != SJ_OK) {
        fprintf(stderr, "%s: %s\n", options->module_path, error.text);
        return false;
    }
    took->cpu_ms = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    took->wall_ms = now_ms(CLOCK_MONOTONIC) - start;
    return true;
}

static void keep_least(double *least, double value)
{
    *least = value < *least ? value : *least;
}

static void count_functions(const sj_plan *plan, tally *sums)
{
    for (uint32_t i = 0; i < plan->header->function_count; i++) {
        const sj_plan_function *function = &sj_plan_functions(plan->header)[i];
        if (function->skip == SJ_SKIP_COLD_PART) {
            continue;
        }
        const bool is_ruled =
            function->skip == SJ_SKIP_RUNTIME_SUPPORT || function->skip == SJ_SKIP_NO_CFI ||
            function->skip == SJ_SKIP_GO_RUNTIME || function->skip == SJ_SKIP_OUT_OF_TEXT;
        sums->techniques[function->technique]++;
        sums->skips[function->skip]++;
        sums->ruled += is_ruled;
        sums->planned += !is_ruled;
    }
    sums->text_mb = (double)(plan->header->text_high - plan->header->text_low) / 1e6;
}

static bool measure_once(const sj_planner_options *options, bool is_first, tally *sums)
{
    sj_planner_options parallel = *options;
    sj_plan plan;
    times took;
    if (!run(options, &plan, &took)) {
        return false;
    }
    keep_least(&sums->make_ms, took.cpu_ms);
    keep_least(&sums->wall_ms, took.wall_ms);
    if (is_first) {
        count_functions(&plan, sums);
    }
    sj_plan_free(&plan);
    parallel.threads = sj_plan_threads();
    if (!run(&parallel, &plan, &took)) {
        return false;
    }
    keep_least(&sums->parallel_ms, took.wall_ms);
    keep_least(&sums->parallel_cpu_ms, took.cpu_ms);
    sj_plan_free(&plan);
    return true;
}

static int measure(const char *path, const char *cache, tally *sums)
{
    sj_planner_options options = {.module_path = path};
    sums->make_ms = sums->wall_ms = sums->cached_ms = 1e18;
    sums->parallel_ms = sums->parallel_cpu_ms = 1e18;
    for (int i = 0; i < ROUNDS; i++) {
        if (!measure_once(&options, i == 0, sums)) {
            return -1;
        }
    }
    options.cache_directory = cache;
    for (int i = 0; i <= ROUNDS; i++) {
        sj_plan plan;
        times took;
        if (run(&options, &plan, &took) && plan.from_cache) {
            keep_least(&sums->cached_ms, took.cpu_ms);
        }
        sj_plan_free(&plan);
    }
    return 0;
}

static void print_row(const char *path, const tally *sums, bool with_reasons)
{
    const double percent = sums->planned > 0 ? 100.0 / sums->planned : 0;
    const unsigned hooked = sums->techniques[SJ_TECHNIQUE_INLINE] +
                            sums->techniques[SJ_TECHNIQUE_SHORT] +
                            sums->techniques[SJ_TECHNIQUE_LEAF_COPY];
    const char *slash = strrchr(path, '/');
    printf("%-24.24s %6.2f %7u %6u %7.2f %6.2f %6.2f %7.2f %8.1f %6.1f %7.1f %8.1f %8.1f %8.1f "
           "%7.2f\n",
           slash != NULL ? slash + 1 : path, sums->text_mb, sums->planned, sums->ruled,
           sums->techniques[SJ_TECHNIQUE_INLINE] * percent,
           sums->techniques[SJ_TECHNIQUE_SHORT] * percent,
           sums->techniques[SJ_TECHNIQUE_LEAF_COPY] * percent, hooked * percent, sums->make_ms,
           sums->make_ms / sums->text_mb, sums->text_mb / sums->make_ms * 1e3, sums->wall_ms,
           sums->parallel_ms, sums->parallel_cpu_ms, sums->cached_ms);
    for (int i = 1; i < SKIPS && with_reasons; i++) {
        if (sums->skips[i] > 0) {
            printf("    %6u %6.2f%%  %s\n", sums->skips[i], sums->skips[i] * percent,
                   sj_skip_text(i));
        }
    }
}

static void remove_cache(const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    if (directory != NULL) {
        closedir(directory);
    }
    (void)rmdir(folder);
}

int main(int argc, char **argv)
{
    char cache[] = "planner_bench.XXXXXX";
    const bool with_reasons = argc > 1 && strcmp(argv[1], "--reasons") == 0;
    if (argc < 2 || mkdtemp(cache) == NULL) {
        fprintf(stderr, "usage: planner_bench [--reasons] FILE...\n");
        return 2;
    }
    printf("%-24s %6s %7s %6s %7s %6s %6s %7s %8s %6s %7s %8s %8s %8s %7s\n", "module", "MB",
           "planned", "ruled", "inline%", "short%", "leaf%", "hooked%", "ms", "ms/MB", "MB/s",
           "clock", "all", "its CPU", "cached");
    int failures = 0;
    for (int i = 1 + with_reasons; i < argc; i++) {
        tally sums = {0};
        if (measure(argv[i], cache, &sums) != 0) {
            failures++;
            continue;
        }
        print_row(argv[i], &sums, with_reasons);
    }
    remove_cache(cache);
    return failures == 0 ? 0 : 1;
}
